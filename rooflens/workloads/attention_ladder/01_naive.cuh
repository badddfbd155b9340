// 01 naive: three kernels, product, softmax and product, with all scores in global memory between them.
//
// A score is 2 w FLOP, and so is its share of the second product: 4 w FLOP (256) for four trips of 4 bytes: written,
// read by softmax, its weight written and read again. 16 FLOP/B at DRAM, whatever the length.
// softmax reads its row three times (largest, sum, weights), which L1 keeps: 16 KiB at 4096 keys.
// The products are naive themselves: every multiply-add wants two loads. The 32 lanes of a warp read 32 rows of K: one
// load touches 32 lines and uses 4 bytes of each.
// Wall: L1, in both products; DRAM in softmax, and in all three as soon as the products are good ones.
#pragma once

#include "shape.cuh"

namespace naive {

constexpr int kEdge = 32;      // scores, or results, along a side of a block
constexpr int kThreads = 256;  // of a row's softmax
constexpr int kWarps = kThreads / 32;

__global__ void attention_01_scores(int length, const float* __restrict__ q, const float* __restrict__ k,
                                    float* __restrict__ scores) {
  const int key = static_cast<int>(blockIdx.x) * kEdge + static_cast<int>(threadIdx.x);
  const int query = static_cast<int>(blockIdx.y) * kEdge + static_cast<int>(threadIdx.y);
  const int head = static_cast<int>(blockIdx.z) * length;  // its first row
  float sum = 0.0f;
  for (int i = 0; i < kWidth; ++i) sum = fmaf(q[(head + query) * kWidth + i], k[(head + key) * kWidth + i], sum);
  scores[(head + query) * length + key] = kScale * sum;
}

// Combines a value of each thread; all threads get the result.
template <typename Combine>
__device__ float over_block(float value, float* of_warps, Combine combine) {
  const int thread = static_cast<int>(threadIdx.x);
  const float of_warp = over_lanes<32>(value, combine);
  __syncthreads();  // the results of the call before have been read
  if (thread % 32 == 0) of_warps[thread / 32] = of_warp;
  __syncthreads();
  float result = of_warps[0];
  for (int warp = 1; warp < kWarps; ++warp) result = combine(result, of_warps[warp]);
  return result;
}

// A block for each row; the weights take the place of the scores.
__global__ void attention_01_softmax(int length, float* __restrict__ scores) {
  __shared__ float of_warps[kWarps];
  float* row = &scores[static_cast<int>(blockIdx.x) * length];
  const int first = static_cast<int>(threadIdx.x);
  float largest = -INFINITY;
  for (int key = first; key < length; key += kThreads) largest = fmaxf(largest, row[key]);
  largest = over_block(largest, of_warps, Largest{});
  float sum = 0.0f;
  for (int key = first; key < length; key += kThreads) sum += expf(row[key] - largest);
  sum = over_block(sum, of_warps, Sum{});
  for (int key = first; key < length; key += kThreads) row[key] = expf(row[key] - largest) / sum;
}

__global__ void attention_01_values(int length, const float* __restrict__ weights, const float* __restrict__ v,
                                    float* __restrict__ out) {
  const int column = static_cast<int>(blockIdx.x) * kEdge + static_cast<int>(threadIdx.x);
  const int query = static_cast<int>(blockIdx.y) * kEdge + static_cast<int>(threadIdx.y);
  const int head = static_cast<int>(blockIdx.z) * length;
  float sum = 0.0f;
  for (int key = 0; key < length; ++key) {
    sum = fmaf(weights[(head + query) * length + key], v[(head + key) * kWidth + column], sum);
  }
  out[(head + query) * kWidth + column] = sum;
}

inline void launch(const Shape& shape, const float* q, const float* k, const float* v, float* scores, float* out) {
  const unsigned edge = static_cast<unsigned>(shape.length / kEdge);
  const unsigned heads = static_cast<unsigned>(shape.heads);
  const dim3 block(kEdge, kEdge);
  attention_01_scores<<<dim3(edge, edge, heads), block>>>(shape.length, q, k, scores);
  attention_01_softmax<<<static_cast<unsigned>(shape.rows()), kThreads>>>(shape.length, scores);
  attention_01_values<<<dim3(kWidth / kEdge, edge, heads), block>>>(shape.length, scores, v, out);
}

}  // namespace naive
