// 10 multistage: the next two or three tiles are on their way while tensor cores multiply the present one.
//
// In rungs 08 and 09 a block loads, waits, and only then multiplies: between two steps its tensor cores have nothing to
// do. cp.async (LDGSTS, from compute capability 8.0 on) copies 16 bytes from far into shared memory with no register in
// between, and no warp waits for it. A step is 64 k, 32 KiB: four stages where a block may have 128 KiB of shared memory
// (A100, H100, B200), three where it may have 99 (RTX), two on Turing, which copies without cp.async.
// One barrier a step is enough: the stage that is fetched next was read before it.
// Rows are not padded: chunks of 16 bytes change places by the number of their row, so the 8 rows of a matrix lie in
// different banks, and three stages fit where padded ones would not. ldmatrix reads four matrices of 8x8 at a time.
// A warp reads 8 times for 32 multiplications of 16x8x16, and its sums go to C two floats at a time.
// Wall: the tensor pipe, as far as this path (mma) reaches: two thirds of the dense peak on compute capability 9.0.
#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include "../device.cuh"
#include "../swizzle.cuh"
#include "../warp_mma.cuh"

namespace multistage {

constexpr int kTile = 128;                                  // rows and columns of C in a block
constexpr int kDepth = 64;                                  // k in a step
constexpr int kWarpTile = 64;                               // rows and columns of C in a warp
constexpr int kWarpsAcross = kTile / kWarpTile;             // 2
constexpr int kThreads = 32 * kWarpsAcross * kWarpsAcross;  // 128
constexpr int kEdge = 16;                                   // of what one ldmatrix reads, and k of one multiplication
constexpr int kEach = kWarpTile / kEdge;                    // of them along a side of a warp's tile: 4
constexpr int kVector = 8;                                  // halves in 16 bytes
constexpr int kTileHalves = kTile * kDepth;                 // of A in a stage, and of B
constexpr int kLoads = kTileHalves / kVector / kThreads;    // vectors of A, and of B, that a thread copies: 8
constexpr int kStageBytes = 2 * kTileHalves * static_cast<int>(sizeof(__half));

__device__ constexpr unsigned bytes(int count) { return static_cast<unsigned>(count) * sizeof(__half); }

__device__ inline const __half* halves(const unsigned char* at) { return reinterpret_cast<const __half*>(at); }

// n is a multiple of the tile; a and b are aligned to 16 bytes, c to 8.
template <int stages>
__global__ void __launch_bounds__(kThreads)
    gemm_10_multistage(int n, const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  ROOFLENS_SHARED(memory);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int row = warp / kWarpsAcross * kWarpTile;
  const int column = warp % kWarpsAcross * kWarpTile;
  const int steps = n / kDepth;
  // Addresses are worked out once: 223 instructions a step, not 290 (sm_80, 128 of them products). From load to load and
  // from step to step a thread goes on by whole rows, in multiples of 8: its chunks keep their places in these.
  constexpr int kAcrossA = kDepth / kVector;       // vectors in a row of A's tile: 8
  constexpr int kAcrossB = kTile / kVector;        // of B's: 16
  constexpr int kRowsA = kThreads / kAcrossA;      // rows that all threads copy at a time: 16
  constexpr int kRowsB = kThreads / kAcrossB;      // 8
  const __half* a_from = &a[(first_row + thread / kAcrossA) * n + thread % kAcrossA * kVector];
  const __half* b_from = &b[thread / kAcrossB * n + first_column + thread % kAcrossB * kVector];
  const unsigned a_to = bytes(swizzle::place<__half, kDepth>(thread / kAcrossA, thread % kAcrossA * kVector));
  const unsigned b_to = bytes(kTileHalves + swizzle::place<__half, kTile>(thread / kAcrossB, thread % kAcrossB * kVector));
  const auto fetch = [&](unsigned stage) {
    const __half* a_row = a_from;
    const __half* b_row = b_from;
#pragma unroll
    for (int load = 0; load < kLoads; ++load, a_row += kRowsA * n, b_row += kRowsB * n) {
      __pipeline_memcpy_async(memory + (stage + a_to) + bytes(load * kRowsA * kDepth), a_row, kVector * sizeof(__half));
      __pipeline_memcpy_async(memory + (stage + b_to) + bytes(load * kRowsB * kTile), b_row, kVector * sizeof(__half));
    }
    a_from += kDepth;
    b_from += kDepth * n;
  };
  // The chunks that a lane reads: from edge to edge they are two further in a row, which flips bits above its own.
  unsigned a_at[kEach];
  unsigned b_at[kEach];
#pragma unroll
  for (int edge = 0; edge < kEach; ++edge) {
    const int chunk = (lane / kEdge ^ lane % 8 ^ 2 * edge) * kVector;
    a_at[edge] = bytes((row + lane % kEdge) * kDepth + chunk);
    b_at[edge] = bytes(kTileHalves + lane % kEdge * kTile + column + chunk);
  }
  float sums[kEach][2 * kEach][4] = {};  // 16x8 elements each
#pragma unroll
  for (int step = 0; step < stages - 1; ++step) {
    if (step < steps) fetch(step * kStageBytes);
    __pipeline_commit();
  }
  unsigned stage = 0;  // in bytes
  for (int step = 0; step < steps; ++step) {
    __pipeline_wait_prior(stages - 2);
    __syncthreads();
    if (step + stages - 1 < steps) fetch(stage == 0 ? (stages - 1) * kStageBytes : stage - kStageBytes);
    __pipeline_commit();  // in the last steps an empty group: so many are younger than the present one, in every step
#pragma unroll
    for (int k = 0; k < kDepth; k += kEdge) {
      std::uint32_t a_held[kEach][4];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        warp_mma::load_matrices(a_held[i], halves(memory + (stage + a_at[k / kEdge]) + bytes(i * kEdge * kDepth)));
      }
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        std::uint32_t b_held[4];
        warp_mma::load_matrices_transposed(b_held, halves(memory + (stage + b_at[j]) + bytes(k * kTile)));
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          warp_mma::multiply_16x8x16(sums[i][2 * j], a_held[i], b_held[0], b_held[1]);
          warp_mma::multiply_16x8x16(sums[i][2 * j + 1], a_held[i], b_held[2], b_held[3]);
        }
      }
    }
    stage = stage == (stages - 1) * kStageBytes ? 0 : stage + kStageBytes;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * kEach; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int to_row = first_row + row + i * kEdge + half * 8 + lane / 4;
        float* to = &c[to_row * n + first_column + column + j * 8 + lane % 4 * 2];
        *reinterpret_cast<float2*>(to) = make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
  }
}

template <int stages>
void launch_with(int n, const __half* a, const __half* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  rooflens::allow_shared(gemm_10_multistage<stages>, stages * kStageBytes);
  gemm_10_multistage<stages><<<dim3(edge, edge), kThreads, stages * kStageBytes>>>(n, a, b, c);
}

inline void launch(int n, const __half* a, const __half* b, float* c) {
  const int stages = rooflens::device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) / kStageBytes;
  if (stages >= 4) return launch_with<4>(n, a, b, c);
  if (stages == 3) return launch_with<3>(n, a, b, c);
  return launch_with<2>(n, a, b, c);
}

}  // namespace multistage
