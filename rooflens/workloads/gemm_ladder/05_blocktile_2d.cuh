// 05 blocktile 2d: a thread computes 8x8 elements: 8 values of A and 8 of B serve 64 multiply-adds.
//
// 16 values of shared memory for 64 multiply-adds: a quarter for each, where rung 04 needs 9/8. With two or
// four neighbours read at once that is 36 loads (28 LDS.128, 8 LDS.64) for 512 multiply-adds.
// A 128x128 tile of C: a step over 8 k loads 2*128*8*4 = 8 KiB and does 2*128*128*8 = 262144 FLOP: 32 FLOP/B from far.
// Two floats of padding in a row of A put the two rows that a warp reads at a time into different banks. They also leave
// every other row aligned to 8 bytes only, and so four k of 8 rows are not read at once: holding those, with two blocks
// on an SM, takes a register or two more than there are, and spills.
// Wall: fp32 and shared memory, near one another. The vectors of B that a warp reads lie 32 bytes apart and use half of
// the banks.
#pragma once

namespace blocktile_2d {

constexpr int kTile = 128;                                // rows and columns of C in a block
constexpr int kDepth = 8;                                 // k in a step
constexpr int kEach = 8;                                  // rows and columns of C in a thread
constexpr int kSide = kTile / kEach;                      // threads along a side: 16
constexpr int kThreads = kSide * kSide;                   // 256
constexpr int kBlocks = 2;                                // on an SM: one computes while the other waits
constexpr int kLoads = kTile * kDepth / kThreads;         // values of A, and of B, that a thread loads: 4
constexpr int kPadding = 2;                               // floats after a row of A

// n is a multiple of the tile.
__global__ void __launch_bounds__(kThreads, kBlocks)
    gemm_05_blocktile_2d(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float a_tile[kTile][kDepth + kPadding];
  __shared__ float b_tile[kDepth][kTile];
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  const int row = thread / kSide * kEach;
  const int column = thread % kSide * kEach;
  float sums[kEach][kEach] = {};
  for (int start = 0; start < n; start += kDepth) {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int i = thread + load * kThreads;
      a_tile[i / kDepth][i % kDepth] = a[(first_row + i / kDepth) * n + start + i % kDepth];
      b_tile[i / kTile][i % kTile] = b[(start + i / kTile) * n + first_column + i % kTile];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float a_held[kEach];
      float b_held[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) a_held[i] = a_tile[row + i][k];
#pragma unroll
      for (int j = 0; j < kEach; ++j) b_held[j] = b_tile[k][column + j];
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
    for (int j = 0; j < kEach; ++j) c[(first_row + row + i) * n + first_column + column + j] = sums[i][j];
  }
}

inline void launch(int n, const float* a, const float* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  gemm_05_blocktile_2d<<<dim3(edge, edge), kThreads>>>(n, a, b, c);
}

}  // namespace blocktile_2d
