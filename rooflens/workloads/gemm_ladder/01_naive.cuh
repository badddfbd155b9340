// 01 naive: one thread for one element of C, neighbours in a warp in one COLUMN of C.
//
// A thread reads a row of A and a column of B: 2 n FLOP for 8 n bytes asked for, 0.25 FLOP/B.
// The 32 lanes of a warp stand in 32 rows: one load of A touches 32 lines and uses 4 bytes of each.
// Wall: L1, which looks up 32 lines for each request.
#pragma once

namespace naive {

constexpr int kEdge = 32;

__global__ void gemm_01_naive(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  const int row = static_cast<int>(blockIdx.x) * kEdge + static_cast<int>(threadIdx.x);
  const int column = static_cast<int>(blockIdx.y) * kEdge + static_cast<int>(threadIdx.y);
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum = fmaf(a[row * n + k], b[k * n + column], sum);
  c[row * n + column] = sum;
}

inline void launch(int n, const float* a, const float* b, float* c) {
  const unsigned edge = static_cast<unsigned>((n + kEdge - 1) / kEdge);
  gemm_01_naive<<<dim3(edge, edge), dim3(kEdge, kEdge)>>>(n, a, b, c);
}

}  // namespace naive
