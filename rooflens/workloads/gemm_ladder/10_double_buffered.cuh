// 10 double buffered: rung 08, whose next tiles are on their way while tensor cores multiply the present ones.
//
// cp.async (LDGSTS, from compute capability 8.0 on) copies 16 bytes from far into shared memory with no register in
// between, and no warp waits for it. Two tiles of A and of B take 2*(128*40 + 32*136)*2 = 37888 bytes.
// In rung 08 a block loads, waits, and only then multiplies: between two steps its tensor cores have nothing to do.
// Wall: the tensor pipe, as far as this path (mma) reaches.
#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "08_tensor_core.cuh"

namespace double_buffered {

using nvcuda::wmma::accumulator;
using nvcuda::wmma::fragment;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;
using nvcuda::wmma::row_major;
using tensor_core::kAStride;
using tensor_core::kBStride;
using tensor_core::kDepth;
using tensor_core::kEach;
using tensor_core::kEdge;
using tensor_core::kLoads;
using tensor_core::kThreads;
using tensor_core::kTile;
using tensor_core::kVector;
using tensor_core::kWarpsAcross;
using tensor_core::kWarpTile;

constexpr int kBuffers = 2;

// n is a multiple of the tile; a and b are aligned to 16 bytes, c to 32.
__global__ void __launch_bounds__(kThreads)
    gemm_10_double_buffered(int n, const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  alignas(32) __shared__ __half a_tiles[kBuffers][kTile * kAStride];
  alignas(32) __shared__ __half b_tiles[kBuffers][kDepth * kBStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int row = warp / kWarpsAcross * kWarpTile;
  const int column = warp % kWarpsAcross * kWarpTile;
  const auto fetch = [&](int start) {
    __half* a_tile = a_tiles[start / kDepth % kBuffers];
    __half* b_tile = b_tiles[start / kDepth % kBuffers];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int i = (thread + load * kThreads) * kVector;
      const int a_row = i / kDepth;
      const int b_row = i / kTile;
      const __half* a_from = &a[(first_row + a_row) * n + start + i % kDepth];
      const __half* b_from = &b[(start + b_row) * n + first_column + i % kTile];
      __pipeline_memcpy_async(&a_tile[a_row * kAStride + i % kDepth], a_from, kVector * sizeof(__half));
      __pipeline_memcpy_async(&b_tile[b_row * kBStride + i % kTile], b_from, kVector * sizeof(__half));
    }
  };
  fragment<accumulator, kEdge, kEdge, kEdge, float> sums[kEach][kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) nvcuda::wmma::fill_fragment(sums[i][j], 0.0f);
  }
  fetch(0);
  __pipeline_commit();
  for (int start = 0; start < n; start += kDepth) {
    if (start + kDepth < n) fetch(start + kDepth);
    __pipeline_commit();  // in the last step an empty group: all but the newest have arrived, in every step alike
    __pipeline_wait_prior(1);
    __syncthreads();
    const __half* a_tile = a_tiles[start / kDepth % kBuffers];
    const __half* b_tile = b_tiles[start / kDepth % kBuffers];
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
  gemm_10_double_buffered<<<dim3(edge, edge), kThreads>>>(n, a, b, c);
}

}  // namespace double_buffered
