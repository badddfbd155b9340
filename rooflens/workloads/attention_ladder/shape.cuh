// What the rungs share: sizes, and what the lanes of a warp know together.
#pragma once

#include "../common.cuh"

constexpr int kWidth = 64;        // of a head: values in a query, a key, a value and a result
constexpr float kScale = 0.125f;  // 1 / sqrt(kWidth)

struct Shape {
  int heads;
  int length;  // queries, and keys, of a head

  int rows() const { return heads * length; }
};

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Combines the values of so many neighbouring lanes, a power of two; all of them get the result.
template <int lanes, typename Combine>
__device__ float over_lanes(float value, Combine combine) {
#pragma unroll
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFu, value, apart));
  }
  return value;
}
