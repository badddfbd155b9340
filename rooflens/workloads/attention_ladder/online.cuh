// The softmax of a row whose scores come tile by tile: sums so far are scaled whenever a larger score comes.
//
// With m the largest score so far, a sum of exp(s - m) becomes one of exp(s - m') by a factor of exp(m - m'). So no
// score is needed twice, and none has to be kept. Milakov, Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135.
#pragma once

#include "shape.cuh"

namespace online {

constexpr float kBase2Scale = kScale * 1.44269504f;  // log2(e): exp(kScale x) = 2^(kBase2Scale x), which GPUs have

// 2^x to about 22 bits, in one instruction: exp2f handles results below 2^-126 as well, in four.
__device__ inline float power_of_two(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#else
  return exp2f(x);
#endif
}

// Of one row: its largest score so far, and the sum of its weights relative to that.
struct Row {
  float largest = -INFINITY;
  float sum = 0.0f;

  // Takes a tile's largest score; returns the factor for all sums so far.
  __device__ float raise(float score) {
    const float before = largest;
    largest = fmaxf(largest, score);
    const float factor = power_of_two(kBase2Scale * (before - largest));
    sum *= factor;
    return factor;
  }

  __device__ float weight(float score) {
    const float found = power_of_two(fmaf(kBase2Scale, score, -kBase2Scale * largest));
    sum += found;
    return found;
  }
};

}  // namespace online
