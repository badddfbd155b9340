// Shared memory: 16-byte loads without bank conflicts. A warp's load is four wavefronts of 128 bytes, and an SM serves
// one a cycle at best.
#pragma once

#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr int kSharedThreads = 256;
constexpr int kSharedTiles = 4;   // a tile is one vector for each thread
constexpr int kSharedLoads = 32;  // of a thread in one pass

// Volatile: the same addresses come round every pass, and an ordinary load would leave the loop.
__device__ inline uint4 load_shared(std::uint32_t address) {
  uint4 held;
  asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(held.x), "=r"(held.y), "=r"(held.z), "=r"(held.w)
               : "r"(address));
  return held;
}

// One pass moves 16 kSharedLoads bytes a thread.
__global__ void __launch_bounds__(kSharedThreads) read_shared(int passes, std::uint32_t* sink, Elapsed* elapsed) {
  __shared__ uint4 tiles[kSharedTiles * kSharedThreads];
  for (int i = threadIdx.x; i < kSharedTiles * kSharedThreads; i += kSharedThreads) {
    tiles[i] = make_uint4(random_word(1, i), random_word(2, i), random_word(3, i), random_word(4, i));
  }
  __syncthreads();
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tiles + threadIdx.x));
  const Elapsed start = clock_now();
  uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
    for (int i = 0; i < kSharedLoads; ++i) {
      fold(sum, load_shared(address + i % kSharedTiles * kSharedThreads * sizeof(uint4)));
    }
  }
  sink[thread_index()] = sum.x ^ sum.y ^ sum.z ^ sum.w;
  write_elapsed(start, elapsed);
}

}  // namespace calibrate
