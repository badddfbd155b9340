// 04 blocktile 1d: a thread computes 8 elements of one column, so one value of B serves 8 multiply-adds.
//
// 8 multiply-adds want 9 values of shared memory (8 of A, 1 of B) instead of 16. With four neighbours of A read at
// once that is 24 loads (8 LDS, 16 LDS.128) for 64 multiply-adds.
// A 64x64 tile of C: a step over 8 k loads 2*64*8*4 = 4 KiB and does 2*64*64*8 = 65536 FLOP: 16 FLOP/B from far.
// Wall: shared memory where an SM does 128 multiply-adds a clock; level with fp32 where it does 64.
#pragma once

namespace blocktile_1d {

constexpr int kTile = 64;                           // rows and columns of C in a block
constexpr int kDepth = 8;                           // k in a step
constexpr int kEach = 8;                            // rows of C in a thread
constexpr int kThreads = kTile * kTile / kEach;     // 512
static_assert(kThreads == kTile * kDepth, "every thread loads one value of A and one of B");

// n is a multiple of the tile.
__global__ void __launch_bounds__(kThreads)
    gemm_04_blocktile_1d(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kDepth];
  __shared__ float b_tile[kDepth][kTile];
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int column = thread % kTile;
  const int row = thread / kTile * kEach;
  float sums[kEach] = {};
  for (int start = 0; start < n; start += kDepth) {
    a_tile[thread / kDepth][thread % kDepth] = a[(first_row + thread / kDepth) * n + start + thread % kDepth];
    b_tile[thread / kTile][column] = b[(start + thread / kTile) * n + first_column + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float b_value = b_tile[k][column];
#pragma unroll
      for (int i = 0; i < kEach; ++i) sums[i] = fmaf(a_tile[row + i][k], b_value, sums[i]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) c[(first_row + row + i) * n + first_column + column] = sums[i];
}

inline void launch(int n, const float* a, const float* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  gemm_04_blocktile_1d<<<dim3(edge, edge), kThreads>>>(n, a, b, c);
}

}  // namespace blocktile_1d
