// 03 tensor core: fp16 operands, fp32 sums; mma.sync, and the next keys and values on their way while these are used.
//
// A warp has 32 queries, which stay in its registers as operands, and takes 64 keys at a time: 64 products of 16x8x16
// for their scores, 64 for their values. The sums of the first product lie in the lanes as the second wants its left
// operand: weights are rounded to fp16 and go on, through no memory at all.
// A row of scores is in four lanes: two exchanges find its largest.
// A step loads 2*64*64*2 = 16 KiB from far and does 4*128*64*64 = 2097152 FLOP with it: 128 FLOP/B from L2. cp.async
// (LDGSTS, from compute capability 8.0 on) brings it in two stages, 32 KiB; one barrier a step is enough, as the stage
// that is fetched next was read before it. From shared memory a warp reads 32 times (ldmatrix) for 128 products.
// Wall: the tensor pipe, as far as this path (mma) reaches: two thirds of the dense peak on compute capability 9.0. Not
// far behind is the unit of exponentials: one for 256 FLOP, half of what it can on an SM of 2048 FLOP a clock (A100).
#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include "../swizzle.cuh"
#include "../warp_mma.cuh"
#include "online.cuh"

namespace tensor_core {

constexpr int kQueries = 128;                             // of a block
constexpr int kKeys = 64;                                 // of a step
constexpr int kWarpQueries = 32;
constexpr int kThreads = kQueries;                        // a warp for 32 of them: 128
constexpr int kEdge = 16;                                 // of what one ldmatrix reads, and k of one product
constexpr int kDown = kWarpQueries / kEdge;               // products along a warp's queries: 2
constexpr int kSteps = kWidth / kEdge;                    // of k, along the width: 4
constexpr int kAcross = kKeys / 8;                        // products along keys: 8
constexpr int kColumns = kWidth / 8;                      // products along the result: 8
constexpr int kVector = 8;                                // halves in 16 bytes
constexpr int kTileHalves = kKeys * kWidth;               // of keys in a stage, and of values
constexpr int kLoads = kTileHalves / kVector / kThreads;  // vectors of keys, and of values, that a thread copies: 4
constexpr int kLoadRows = kThreads / (kWidth / kVector);  // rows that all threads copy at a time: 16

__device__ inline std::uint32_t pair_at(const __half* at) { return *reinterpret_cast<const std::uint32_t*>(at); }

__device__ inline std::uint32_t pair_of(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&both);
}

// length is a multiple of 128; q, k and v are aligned to 16 bytes, out to 8.
__global__ void __launch_bounds__(kThreads)
    attention_03_tensor_core(int length, const __half* __restrict__ q, const __half* __restrict__ k,
                             const __half* __restrict__ v, float* __restrict__ out) {
  alignas(16) __shared__ __half tiles[2][2 * kTileHalves];  // two stages of keys and values
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int head = static_cast<int>(blockIdx.y) * length;  // its first row
  const int row = head + static_cast<int>(blockIdx.x) * kQueries + thread / 32 * kWarpQueries + lane / 4;
  const int column = lane % 4 * 2;

  // From load to load a thread goes on by 16 rows: its chunk keeps its place in them.
  const int copied = thread / (kWidth / kVector) * kWidth + thread % (kWidth / kVector) * kVector;
  const int copy_to = swizzle::place<__half, kWidth>(copied / kWidth, copied % kWidth);
  const auto fetch = [&](int step) {
    const int from = (head + step * kKeys) * kWidth + copied;
    __half* to = &tiles[step % 2][copy_to];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int further = load * kLoadRows * kWidth;
      __pipeline_memcpy_async(&to[further], &k[from + further], kVector * sizeof(__half));
      __pipeline_memcpy_async(&to[kTileHalves + further], &v[from + further], kVector * sizeof(__half));
    }
    __pipeline_commit();
  };
  fetch(0);

  std::uint32_t queries[kDown][kSteps][4];
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const __half* at = &q[(row + i * kEdge) * kWidth + step * kEdge + column];
      queries[i][step][0] = pair_at(at);
      queries[i][step][1] = pair_at(&at[8 * kWidth]);
      queries[i][step][2] = pair_at(&at[8]);
      queries[i][step][3] = pair_at(&at[8 * kWidth + 8]);
    }
  }
  // The chunks that a lane reads. A key's width is k of the first product, and its row: read as it is. A value's row is
  // k of the second one: read transposed.
  int key_at[kSteps];
  int value_at[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    key_at[step] = swizzle::place<__half, kWidth>(lane / 16 * 8 + lane % 8, step * kEdge + lane / 8 % 2 * 8);
    value_at[step] = kTileHalves + swizzle::place<__half, kWidth>(lane % kEdge, step * kEdge + lane / kEdge * 8);
  }
  online::Row rows[kDown][2];  // lane / 4 and 8 below
  float sums[kDown][kColumns][4] = {};
  for (int step = 0; step < length / kKeys; ++step) {
    __pipeline_wait_prior(0);
    __syncthreads();
    if (step + 1 < length / kKeys) fetch(step + 1);
    const __half* tile = tiles[step % 2];
    float scores[kDown][kAcross][4] = {};  // 16x8 elements each
#pragma unroll
    for (int along = 0; along < kSteps; ++along) {
#pragma unroll
      for (int j = 0; j < kAcross; j += 2) {
        std::uint32_t keys[4];
        warp_mma::load_matrices(keys, &tile[key_at[along] + j * 8 * kWidth]);
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          warp_mma::multiply_16x8x16(scores[i][j], queries[i][along], keys[0], keys[1]);
          warp_mma::multiply_16x8x16(scores[i][j + 1], queries[i][along], keys[2], keys[3]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float largest = -INFINITY;
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          largest = fmaxf(largest, fmaxf(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
        }
        const float factor = rows[i][half].raise(over_lanes<4>(largest, Largest{}));
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          sums[i][j][2 * half] *= factor;
          sums[i][j][2 * half + 1] *= factor;
        }
#pragma unroll
        for (int j = 0; j < kAcross; ++j) {
          scores[i][j][2 * half] = rows[i][half].weight(scores[i][j][2 * half]);
          scores[i][j][2 * half + 1] = rows[i][half].weight(scores[i][j][2 * half + 1]);
        }
      }
    }
#pragma unroll
    for (int along = 0; along < kKeys / kEdge; ++along) {
      std::uint32_t weights[kDown][4];
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
          const float(&from)[4] = scores[i][2 * along + part / 2];
          weights[i][part] = pair_of(from[part % 2 * 2], from[part % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int j = 0; j < kColumns; j += 2) {
        std::uint32_t values[4];
        warp_mma::load_matrices_transposed(values, &tile[value_at[j / 2] + along * kEdge * kWidth]);
#pragma unroll
        for (int i = 0; i < kDown; ++i) {
          warp_mma::multiply_16x8x16(sums[i][j], weights[i], values[0], values[1]);
          warp_mma::multiply_16x8x16(sums[i][j + 1], weights[i], values[2], values[3]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kDown; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float share = 1.0f / over_lanes<4>(rows[i][half].sum, Sum{});
      float* to = &out[(row + i * kEdge + half * 8) * kWidth + column];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        *reinterpret_cast<float2*>(&to[j * 8]) =
            make_float2(share * sums[i][j][2 * half], share * sums[i][j][2 * half + 1]);
      }
    }
  }
}

inline void launch(const Shape& shape, const __half* q, const __half* k, const __half* v, float* out) {
  const dim3 grid(static_cast<unsigned>(shape.length / kQueries), static_cast<unsigned>(shape.heads));
  attention_03_tensor_core<<<grid, kThreads>>>(shape.length, q, k, v, out);
}

}  // namespace tensor_core
