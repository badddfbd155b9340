// 03 shared tile: a block copies tiles of A and B to shared memory and reads each value 32 times from there.
//
// A step over 32 k loads 2*32*32*4 = 8 KiB from far and does 2*32^3 = 65536 FLOP with it: 8 FLOP/B instead of 0.25.
// Near, little is gained: every multiply-add still wants two values, now of shared memory. nvcc reads four neighbours
// of A at once; that leaves 40 loads (32 LDS, 8 LDS.128) for 32 multiply-adds.
// Wall: shared memory, which serves one load of a warp a clock where two to four multiply-adds could run.
#pragma once

namespace shared_tile {

constexpr int kTile = 32;

// n is a multiple of the tile.
__global__ void gemm_03_shared_tile(int n, const float* __restrict__ a, const float* __restrict__ b,
                                    float* __restrict__ c) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];
  const int tx = static_cast<int>(threadIdx.x);
  const int ty = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + ty;
  const int column = static_cast<int>(blockIdx.x) * kTile + tx;
  float sum = 0.0f;
  for (int start = 0; start < n; start += kTile) {
    a_tile[ty][tx] = a[row * n + start + tx];
    b_tile[ty][tx] = b[(start + ty) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum = fmaf(a_tile[ty][k], b_tile[k][tx], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

inline void launch(int n, const float* a, const float* b, float* c) {
  const unsigned edge = static_cast<unsigned>(n / kTile);
  gemm_03_shared_tile<<<dim3(edge, edge), dim3(kTile, kTile)>>>(n, a, b, c);
}

}  // namespace shared_tile
