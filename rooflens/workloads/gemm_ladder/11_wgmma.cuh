// 11 wgmma: Hopper's own path. TMA copies whole tiles into shared memory, and tensor cores read both operands there.
//
// No thread computes an address or holds an operand: one thread asks for a tile, a barrier counts its bytes, and four
// warps together multiply 64x128x16 at once. 128x256 elements of C in a block read 2*128*256 / ((128+256)*2) = 85 FLOP/B
// from far. Four stages of 48 KiB are under way; a stage is fetched again when the step after it has begun.
// Tiles stand in rows of 128 bytes, of which TMA swizzles eight: A in rows of K, B in rows of N, four boxes of 64 columns.
// Wall: the tensor pipe, at the dense peak of compute capability 9.0. No other GPU has this instruction.
#pragma once

#include <cuda_fp16.h>

#include "hopper.cuh"

namespace wgmma {

constexpr int kRows = 128;                                // of C in a block
constexpr int kColumns = 256;                             // of C in a block, 128 for each of two groups of four warps
constexpr int kDepth = 64;                                // k in a step: 128 bytes
constexpr int kK = 16;                                    // k in one multiplication
constexpr int kThreads = 256;
constexpr int kGroup = 128;                               // threads, and columns of C, of four warps
constexpr int kStages = 4;
constexpr int kBox = 64;                                  // columns in a row of 128 bytes
constexpr int kRowBytes = kBox * static_cast<int>(sizeof(__half));
constexpr int kAtom = 8 * kRowBytes;                      // eight rows, swizzled
constexpr int kABytes = kRows * kRowBytes;
constexpr int kBoxBytes = kDepth * kRowBytes;             // of B
constexpr int kStageBytes = kABytes + kColumns / kBox * kBoxBytes;
constexpr int kSharedBytes = kStages * kStageBytes;

// n is a multiple of 256.
__global__ void __launch_bounds__(kThreads)
    gemm_11_wgmma(int n, const __grid_constant__ hopper::TensorMap a, const __grid_constant__ hopper::TensorMap b,
                  float* __restrict__ c) {
  if constexpr (hopper::kIsHere) {
    HOPPER_SHARED(memory);
    alignas(8) __shared__ std::uint64_t arrived[kStages];
    const int thread = static_cast<int>(threadIdx.x);
    const int group = thread / kGroup;
    const int first_row = static_cast<int>(blockIdx.y) * kRows;
    const int first_column = static_cast<int>(blockIdx.x) * kColumns;
    const int steps = n / kDepth;
    const auto fetch = [&](int step) {
      std::uint64_t* barrier = &arrived[step % kStages];
      unsigned char* stage = memory + step % kStages * kStageBytes;
      hopper::barrier_expect(barrier, kStageBytes);
      hopper::load_box(stage, a, step * kDepth, first_row, barrier);
      for (int box = 0; box < kColumns / kBox; ++box) {
        unsigned char* to = stage + kABytes + box * kBoxBytes;
        hopper::load_box(to, b, first_column + box * kBox, step * kDepth, barrier);
      }
    };
    if (thread == 0) {
      for (std::uint64_t& barrier : arrived) hopper::barrier_start(&barrier);
      hopper::barriers_started();
    }
    __syncthreads();
    if (thread == 0) {
      for (int step = 0; step < kStages - 1 && step < steps; ++step) fetch(step);
    }
    float sums[2][64] = {};  // rows 0 to 63 and 64 to 127 of the group's columns
    for (int step = 0; step < steps; ++step) {
      hopper::barrier_wait(&arrived[step % kStages], step / kStages % 2);
      const unsigned char* a_tile = memory + step % kStages * kStageBytes;
      const unsigned char* b_tile = a_tile + kABytes + group * (kGroup / kBox) * kBoxBytes;
      hopper::multiply_begin();
#pragma unroll
      for (int k = 0; k < kDepth / kK; ++k) {
        const auto b_held = hopper::descriptor(b_tile + k * kK * kRowBytes, kBoxBytes, kAtom);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned char* from = a_tile + half * 64 * kRowBytes + k * kK * static_cast<int>(sizeof(__half));
          hopper::multiply_64x128x16(sums[half], hopper::descriptor(from, 0, kAtom), b_held);
        }
      }
      hopper::multiply_end();
      hopper::multiplied_but<1>();
      __syncthreads();  // both groups are done with the step before: its stage is free
      if (thread == 0 && step + kStages - 1 < steps) fetch(step + kStages - 1);
    }
    hopper::multiplied_but<0>();
    const int lane = thread % 32;
    const int row = first_row + thread % kGroup / 32 * 16 + lane / 4;
    const int column = first_column + group * kGroup + lane % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 64; i += 2) {
        float* to = &c[(row + half * 64 + i / 2 % 2 * 8) * n + column + i / 4 * 8];
        to[0] = sums[half][i];
        to[1] = sums[half][i + 1];
      }
    }
  }
}

inline void launch(int n, const __half* a, const __half* b, float* c) {
  rooflens::require(n % kColumns == 0, "`--n` of rung 11 must be a multiple of 256, its largest tile");
  hopper::require_hopper();
  hopper::allow_shared(gemm_11_wgmma, kSharedBytes);
  const hopper::TensorMap a_map = hopper::tensor_map(a, n, kRows);
  const hopper::TensorMap b_map = hopper::tensor_map(b, n, kDepth);
  const dim3 grid(static_cast<unsigned>(n / kColumns), static_cast<unsigned>(n / kRows));
  gemm_11_wgmma<<<grid, kThreads, kSharedBytes>>>(n, a_map, b_map, c);
}

}  // namespace wgmma
