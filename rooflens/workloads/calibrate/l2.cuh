// L2: every block walks through one buffer that fits a quarter of L2, each from another place, past L1.
//
// A quarter, because on 8.0 and 9.0 each half of L2 may hold its own copy of a line.
#pragma once

#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr int kL2Threads = 256;
constexpr int kL2Blocks = 4;                             // on an SM at least: registers for all loads of a pass
constexpr int kL2Loads = 8;                              // of a thread in one pass
constexpr long long kL2Step = kL2Loads * kL2Threads;     // vectors that a block reads in one pass
constexpr long long kL2Spread = 0x9E3779B1LL * kL2Step;  // from block to block: an odd number of steps

// One pass reads 16 kL2Loads bytes a thread. `vectors` is a power of two and at least kL2Step.
__global__ void __launch_bounds__(kL2Threads, kL2Blocks)
    read_l2(int passes, long long vectors, const uint4* buffer, std::uint32_t* sink, Elapsed* elapsed) {
  const Elapsed start = clock_now();
  const long long mask = vectors - 1;
  long long first = blockIdx.x * kL2Spread & mask;
  uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const uint4* from = buffer + first + threadIdx.x;
    uint4 held[kL2Loads];
#pragma unroll
    for (int i = 0; i < kL2Loads; ++i) held[i] = __ldcg(from + i * kL2Threads);  // .cg: cached in L2, not in L1
#pragma unroll
    for (int i = 0; i < kL2Loads; ++i) fold(sum, held[i]);
    first = (first + kL2Step) & mask;
  }
  sink[thread_index()] = sum.x ^ sum.y ^ sum.z ^ sum.w;
  write_elapsed(start, elapsed);
}

}  // namespace calibrate
