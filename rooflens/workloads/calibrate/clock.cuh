// The SM clock under load: cycles over nanoseconds, read inside the very kernel that is being measured.
#pragma once

namespace calibrate {

struct Elapsed {
  long long cycles;
  long long nanoseconds;
};

__device__ inline Elapsed clock_now() {
  long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return {clock64(), nanoseconds};
}

// Call after the last store. Grids fill the GPU exactly once, so block 0 runs as long as the whole kernel.
__device__ inline void write_elapsed(Elapsed start, Elapsed* elapsed) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  const Elapsed end = clock_now();
  *elapsed = {end.cycles - start.cycles, end.nanoseconds - start.nanoseconds};
}

}  // namespace calibrate
