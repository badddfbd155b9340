// 06 vectorized: the same tiles, fetched 16 bytes at a time; A is stored transposed so that its columns are contiguous.
//
// 2 loads from far a step instead of 8, with a quarter of the address arithmetic. B was read by vectors before, A by
// two or four k of a row: now 8 rows at one k are two vectors, 32 loads of shared memory for 512 multiply-adds.
// Four floats of padding in a row of A keep 16-byte alignment (528 = 33*16) and put the lanes that store A in two
// groups of rows into different banks.
// Wall: fp32. Reads of B still use half of the banks.
#pragma once

namespace vectorized {

constexpr int kTile = 128;                               // rows and columns of C in a block
constexpr int kDepth = 8;                                // k in a step
constexpr int kEach = 8;                                 // rows and columns of C in a thread
constexpr int kSide = kTile / kEach;                     // threads along a side: 16
constexpr int kThreads = kSide * kSide;                  // 256
constexpr int kBlocks = 2;                               // on an SM: one computes while the other waits
constexpr int kVector = 4;                               // floats in 16 bytes
static_assert(kThreads * kVector == kTile * kDepth, "every thread loads one vector of A and one of B");

__device__ inline void load_vector(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

// n is a multiple of the tile; a, b and c are aligned to 16 bytes.
__global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_06_vectorized(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  alignas(16) __shared__ float a_tile[kDepth][kTile + kVector];
  alignas(16) __shared__ float b_tile[kDepth][kTile];
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int row = thread / kSide * kEach;
  const int column = thread % kSide * kEach;
  const int a_row = thread / (kDepth / kVector);
  const int a_k = thread % (kDepth / kVector) * kVector;
  const int b_k = thread / (kTile / kVector);
  const int b_column = thread % (kTile / kVector) * kVector;
  float sums[kEach][kEach] = {};
  for (int start = 0; start < n; start += kDepth) {
    const float4 a_vector = *reinterpret_cast<const float4*>(&a[(first_row + a_row) * n + start + a_k]);
    a_tile[a_k + 0][a_row] = a_vector.x;
    a_tile[a_k + 1][a_row] = a_vector.y;
    a_tile[a_k + 2][a_row] = a_vector.z;
    a_tile[a_k + 3][a_row] = a_vector.w;
    load_vector(&b_tile[b_k][b_column], &b[(start + b_k) * n + first_column + b_column]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      alignas(16) float a_held[kEach];
      alignas(16) float b_held[kEach];
#pragma unroll
      for (int v = 0; v < kEach; v += kVector) {
        load_vector(&a_held[v], &a_tile[k][row + v]);
        load_vector(&b_held[v], &b_tile[k][column + v]);
      }
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(a_held[i], b_held[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; j += kVector) {
      const float4 values = make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      *reinterpret_cast<float4*>(&c[(first_row + row + i) * n + first_column + column + j]) = values;
    }
  }
}

inline void launch(int n, const float* a, const float* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  gemm_06_vectorized<<<dim3(edge, edge), kThreads>>>(n, a, b, c);
}

}  // namespace vectorized
