// 02 online softmax: one kernel; a block has 64 queries, takes 64 keys at a time, and keeps their scores on chip.
//
// No score is written: DRAM sees Q, K, V and the result once, 16 bytes for 4 n FLOP: n / 4 FLOP/B for n keys.
// A step over 64 keys loads 2*64*64*4 = 32 KiB from far and does 4*64*64*64 = 1048576 FLOP with it: 32 FLOP/B from L2.
// softmax needs the largest score of a row, which is not known before the last tile: see online.cuh.
// A thread has 8 queries and 4 keys, then 8 queries and 4 columns: 12 loads of 16 bytes for 128 multiply-adds, in both
// products. The weights go through shared memory, where they take the place of the keys: 48 KiB in all.
// Wall: multiply-adds; where an SM does 128 of them a clock instead of 64, shared memory is close.
#pragma once

#include "../swizzle.cuh"
#include "online.cuh"

namespace online_softmax {

constexpr int kTile = 64;                  // queries of a block, and keys of a step
constexpr int kThreads = 128;
constexpr int kAcross = 16;                // threads that share a query
constexpr int kDown = kThreads / kAcross;  // 8
constexpr int kQueries = kTile / kDown;    // of a thread: 8
constexpr int kEach = kTile / kAcross;     // keys, then columns, of a thread: 4
constexpr int kVector = 4;                 // floats in 16 bytes
constexpr int kTileFloats = kTile * kWidth;
static_assert(kTile == kWidth, "weights take the place of keys");

__device__ inline float4& vector_at(float* tile, int row, int column) {
  return *reinterpret_cast<float4*>(&tile[swizzle::place<float, kWidth>(row, column)]);
}

__device__ inline void load_tile(float* to, const float* from, int thread) {
#pragma unroll
  for (int load = 0; load < kTileFloats / kVector / kThreads; ++load) {
    const int i = (thread + load * kThreads) * kVector;
    vector_at(to, i / kWidth, i % kWidth) = *reinterpret_cast<const float4*>(&from[i]);
  }
}

// length is a multiple of the tile; all operands are aligned to 16 bytes.
__global__ void __launch_bounds__(kThreads)
    attention_02_online_softmax(int length, const float* __restrict__ q, const float* __restrict__ k,
                                const float* __restrict__ v, float* __restrict__ out) {
  alignas(16) __shared__ float q_tile[kTileFloats];
  alignas(16) __shared__ float k_tile[kTileFloats];
  alignas(16) __shared__ float v_tile[kTileFloats];
  const int thread = static_cast<int>(threadIdx.x);
  const int across = thread % kAcross;
  const int down = thread / kAcross;
  const int head = static_cast<int>(blockIdx.y) * length;  // its first row
  const int first_query = head + static_cast<int>(blockIdx.x) * kTile;
  load_tile(q_tile, &q[first_query * kWidth], thread);
  online::Row rows[kQueries];
  float sums[kQueries][kEach] = {};
  for (int start = head; start < head + length; start += kTile) {
    load_tile(k_tile, &k[start * kWidth], thread);
    load_tile(v_tile, &v[start * kWidth], thread);
    __syncthreads();
    float scores[kQueries][kEach] = {};
#pragma unroll 2
    for (int i = 0; i < kWidth; i += kVector) {
      float4 keys[kEach];
#pragma unroll
      for (int e = 0; e < kEach; ++e) keys[e] = vector_at(k_tile, across + e * kAcross, i);
#pragma unroll
      for (int r = 0; r < kQueries; ++r) {
        const float4 query = vector_at(q_tile, down + r * kDown, i);
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
          float& score = scores[r][e];
          score = fmaf(query.x, keys[e].x, score);
          score = fmaf(query.y, keys[e].y, score);
          score = fmaf(query.z, keys[e].z, score);
          score = fmaf(query.w, keys[e].w, score);
        }
      }
    }
    __syncthreads();  // all keys have been read
#pragma unroll
    for (int r = 0; r < kQueries; ++r) {
      float largest = scores[r][0];
#pragma unroll
      for (int e = 1; e < kEach; ++e) largest = fmaxf(largest, scores[r][e]);
      const float factor = rows[r].raise(over_lanes<kAcross>(largest, Largest{}));
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        sums[r][e] *= factor;
        k_tile[swizzle::place<float, kTile>(down + r * kDown, across + e * kAcross)] = rows[r].weight(scores[r][e]);
      }
    }
    __syncwarp();  // who shares a query is in one warp
#pragma unroll 2
    for (int key = 0; key < kTile; key += kVector) {
      float4 values[kVector];
#pragma unroll
      for (int i = 0; i < kVector; ++i) values[i] = vector_at(v_tile, key + i, across * kEach);
#pragma unroll
      for (int r = 0; r < kQueries; ++r) {
        const float4 at = vector_at(k_tile, down + r * kDown, key);
        const float weights[kVector] = {at.x, at.y, at.z, at.w};
#pragma unroll
        for (int i = 0; i < kVector; ++i) {
          sums[r][0] = fmaf(weights[i], values[i].x, sums[r][0]);
          sums[r][1] = fmaf(weights[i], values[i].y, sums[r][1]);
          sums[r][2] = fmaf(weights[i], values[i].z, sums[r][2]);
          sums[r][3] = fmaf(weights[i], values[i].w, sums[r][3]);
        }
      }
    }
    __syncthreads();  // keys and values come next
  }
#pragma unroll
  for (int r = 0; r < kQueries; ++r) {
    const float share = 1.0f / over_lanes<kAcross>(rows[r].sum, Sum{});
    float* to = &out[(first_query + down + r * kDown) * kWidth + across * kEach];
    *reinterpret_cast<float4*>(to) =
        make_float4(share * sums[r][0], share * sums[r][1], share * sums[r][2], share * sums[r][3]);
  }
}

inline void launch(const Shape& shape, const float* q, const float* k, const float* v, float* out) {
  const dim3 grid(static_cast<unsigned>(shape.length / kTile), static_cast<unsigned>(shape.heads));
  attention_02_online_softmax<<<grid, kThreads>>>(shape.length, q, k, v, out);
}

}  // namespace online_softmax
