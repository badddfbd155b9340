// 07 warptile: a warp owns 64x32 elements of C, and its lanes are laid out so that their reads are contiguous.
//
// A thread still computes 8x8 elements, as 2x2 squares of 4x4; lane (0..7, 0..3) takes the same place in each of the
// four 32x16 quarters. One read of A is 8 neighbouring vectors, 128 bytes for the whole warp; one of B is 4, 64 bytes.
// No two of them share a bank, where rung 06 reads 256 bytes of B out of half of the banks.
// Wall: fp32. What is left beside cuBLAS: no load of the next tile while this one is computed.
#pragma once

namespace warptile {

constexpr int kTile = 128;                                // rows and columns of C in a block
constexpr int kDepth = 8;                                 // k in a step
constexpr int kWarpRows = 64;                             // of C in a warp
constexpr int kWarpColumns = 32;
constexpr int kQuarterRows = 32;                          // 8 lanes of 4 rows
constexpr int kQuarterColumns = 16;                       // 4 lanes of 4 columns
constexpr int kQuarters = 2;                              // along each side
constexpr int kVector = 4;                                // floats in 16 bytes, and edge of a thread's square
constexpr int kWarpsAcross = kTile / kWarpColumns;        // 4
constexpr int kThreads = 32 * kWarpsAcross * (kTile / kWarpRows);  // 256
constexpr int kBlocks = 2;                                // on an SM: one computes while the other waits
static_assert(kThreads * kVector == kTile * kDepth, "every thread loads one vector of A and one of B");

__device__ inline void load_vector(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

// n is a multiple of the tile; a, b and c are aligned to 16 bytes.
__global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_07_warptile(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  alignas(16) __shared__ float a_tile[kDepth][kTile + kVector];
  alignas(16) __shared__ float b_tile[kDepth][kTile];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int row = warp / kWarpsAcross * kWarpRows + lane / 4 * kVector;
  const int column = warp % kWarpsAcross * kWarpColumns + lane % 4 * kVector;
  const int a_row = thread / (kDepth / kVector);
  const int a_k = thread % (kDepth / kVector) * kVector;
  const int b_k = thread / (kTile / kVector);
  const int b_column = thread % (kTile / kVector) * kVector;
  float sums[kQuarters * kVector][kQuarters * kVector] = {};
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
      alignas(16) float a_held[kQuarters * kVector];
      alignas(16) float b_held[kQuarters * kVector];
#pragma unroll
      for (int q = 0; q < kQuarters; ++q) {
        load_vector(&a_held[q * kVector], &a_tile[k][row + q * kQuarterRows]);
        load_vector(&b_held[q * kVector], &b_tile[k][column + q * kQuarterColumns]);
      }
#pragma unroll
      for (int i = 0; i < kQuarters * kVector; ++i) {
#pragma unroll
        for (int j = 0; j < kQuarters * kVector; ++j) sums[i][j] = fmaf(a_held[i], b_held[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kQuarters * kVector; ++i) {
    const int to_row = first_row + row + i / kVector * kQuarterRows + i % kVector;
#pragma unroll
    for (int q = 0; q < kQuarters; ++q) {
      const float* held = &sums[i][q * kVector];
      const float4 values = make_float4(held[0], held[1], held[2], held[3]);
      *reinterpret_cast<float4*>(&c[to_row * n + first_column + column + q * kQuarterColumns]) = values;
    }
  }
}

inline void launch(int n, const float* a, const float* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  gemm_07_warptile<<<dim3(edge, edge), kThreads>>>(n, a, b, c);
}

}  // namespace warptile
