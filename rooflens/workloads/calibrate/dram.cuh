// HBM: 16-byte accesses, the whole GPU striding over buffers many times the size of L2, 32 KiB a block and step.
#pragma once

#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr int kDramThreads = 256;
constexpr int kDramBlocks = 4;  // on an SM at least: threads enough, and registers for kInFlight loads of each
constexpr int kInFlight = 8;
constexpr long long kDramStep = kInFlight * kDramThreads;  // vectors that a block moves at a time: 32 KiB

// One pass reads 16 `vectors` bytes. `vectors` is a multiple of kDramStep x blocks: no block has a tail.
__global__ void __launch_bounds__(kDramThreads, kDramBlocks)
    read_dram(int passes, long long vectors, const uint4* buffer, std::uint32_t* sink, Elapsed* elapsed) {
  const Elapsed start = clock_now();
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 1
    for (long long first = blockIdx.x * kDramStep; first < vectors; first += gridDim.x * kDramStep) {
      const uint4* from = buffer + first + threadIdx.x;
      uint4 held[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) held[i] = __ldcs(from + i * kDramThreads);
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) fold(sum, held[i]);
    }
  }
  sink[thread_index()] = sum.x ^ sum.y ^ sum.z ^ sum.w;
  write_elapsed(start, elapsed);
}

// One pass moves 32 `vectors` bytes: half of them read, half of them written.
__global__ void __launch_bounds__(kDramThreads, kDramBlocks)
    copy_dram(int passes, long long vectors, const uint4* source, uint4* target, Elapsed* elapsed) {
  const Elapsed start = clock_now();
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 1
    for (long long first = blockIdx.x * kDramStep; first < vectors; first += gridDim.x * kDramStep) {
      const uint4* from = source + first + threadIdx.x;
      uint4* to = target + first + threadIdx.x;
      uint4 held[kInFlight];
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) held[i] = __ldcs(from + i * kDramThreads);
#pragma unroll
      for (int i = 0; i < kInFlight; ++i) __stcs(to + i * kDramThreads, held[i]);
    }
  }
  write_elapsed(start, elapsed);
}

}  // namespace calibrate
