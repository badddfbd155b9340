// 08 tensor core: fp16 operands, fp32 sums; a warp multiplies 16x16x16 at once.
//
// One such step is 2*16^3 = 8192 FLOP of a warp, where an FFMA is 64. Four warps own 64x64 elements of C each.
// A step over 32 k loads 2*128*32*2 = 16 KiB and does 2*128*128*32 = 1048576 FLOP: 64 FLOP/B from far.
// Rows of a tile are padded by 8 halves: 80 and 272 bytes apart, so the 8 rows of a matrix read hit different banks.
// Wall: the tensor pipe. On compute capability 9.0 and 10.0 this older path (mma, not wgmma or tcgen05) has a lower
// roof of its own: two thirds of the dense peak on 9.0.
#pragma once

#include <cuda_fp16.h>
#include <mma.h>

namespace tensor_core {

constexpr int kTile = 128;                                   // rows and columns of C in a block
constexpr int kDepth = 32;                                   // k in a step
constexpr int kWarpTile = 64;                                // rows and columns of C in a warp
constexpr int kWarpsAcross = kTile / kWarpTile;              // 2
constexpr int kThreads = 32 * kWarpsAcross * kWarpsAcross;   // 128
constexpr int kEdge = 16;                                    // of one matrix operation
constexpr int kEach = kWarpTile / kEdge;                     // matrices along a side of a warp's tile: 4
constexpr int kVector = 8;                                   // halves in 16 bytes
constexpr int kAStride = kDepth + kVector;
constexpr int kBStride = kTile + kVector;
constexpr int kLoads = kTile * kDepth / kVector / kThreads;  // vectors of A, and of B, that a thread loads: 4

using nvcuda::wmma::accumulator;
using nvcuda::wmma::fragment;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;
using nvcuda::wmma::row_major;

__device__ inline void load_vector(__half* to, const __half* from) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
}

// n is a multiple of the tile; a and b are aligned to 16 bytes, c to 32.
__global__ void __launch_bounds__(kThreads)
    gemm_08_tensor_core(int n, const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  alignas(32) __shared__ __half a_tile[kTile * kAStride];
  alignas(32) __shared__ __half b_tile[kDepth * kBStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int row = warp / kWarpsAcross * kWarpTile;
  const int column = warp % kWarpsAcross * kWarpTile;
  fragment<accumulator, kEdge, kEdge, kEdge, float> sums[kEach][kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) nvcuda::wmma::fill_fragment(sums[i][j], 0.0f);
  }
  for (int start = 0; start < n; start += kDepth) {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int i = (thread + load * kThreads) * kVector;
      const int a_row = i / kDepth;
      const int b_row = i / kTile;
      load_vector(&a_tile[a_row * kAStride + i % kDepth], &a[(first_row + a_row) * n + start + i % kDepth]);
      load_vector(&b_tile[b_row * kBStride + i % kTile], &b[(start + b_row) * n + first_column + i % kTile]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; k += kEdge) {
      fragment<matrix_a, kEdge, kEdge, kEdge, __half, row_major> a_held[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        nvcuda::wmma::load_matrix_sync(a_held[i], &a_tile[(row + i * kEdge) * kAStride + k], kAStride);
      }
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        fragment<matrix_b, kEdge, kEdge, kEdge, __half, row_major> b_held;
        nvcuda::wmma::load_matrix_sync(b_held, &b_tile[k * kBStride + column + j * kEdge], kBStride);
#pragma unroll
        for (int i = 0; i < kEach; ++i) nvcuda::wmma::mma_sync(sums[i][j], a_held[i], b_held, sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      float* to = &c[(first_row + row + i * kEdge) * n + first_column + column + j * kEdge];
      nvcuda::wmma::store_matrix_sync(to, sums[i][j], static_cast<unsigned>(n), nvcuda::wmma::mem_row_major);
    }
  }
}

inline void launch(int n, const __half* a, const __half* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  gemm_08_tensor_core<<<dim3(edge, edge), kThreads>>>(n, a, b, c);
}

}  // namespace tensor_core
