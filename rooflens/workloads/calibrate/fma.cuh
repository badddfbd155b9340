// The CUDA cores: independent chains of fused multiply-adds that never settle.
//
// x = a x + b runs into its fixed point, and from there on every operand is a constant. Here each pair (x, y) is
// turned, x += c y and then y -= c x, which for |c| < 2 neither settles nor grows: the bits keep changing.
#pragma once

#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr int kFmaThreads = 256;
constexpr int kFmaPairs = 8;   // independent pairs of a thread cover the latency of the pipe
constexpr int kFmaSteps = 32;  // unrolled: the loop itself takes under 1 % of the issue slots
constexpr int kFmasInPass = 2 * kFmaPairs * kFmaSteps;

__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }
__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline __half2 multiply_add(__half2 a, __half2 b, __half2 c) { return __hfma2(a, b, c); }

__device__ inline void set(double& to, double value) { to = value; }
__device__ inline void set(float& to, double value) { to = static_cast<float>(value); }
__device__ inline void set(__half2& to, double value) { to = __float2half2_rn(static_cast<float>(value)); }

// One pass is kFmasInPass multiply-adds a thread: 2 FLOP each, 4 where they are packed halves.
template <typename Value>
__global__ void __launch_bounds__(kFmaThreads) fma_chains(int passes, Value* sink, Elapsed* elapsed) {
  Value x[kFmaPairs];
  Value y[kFmaPairs];
  Value turn;
  set(turn, 1.0 + 0.5 * random_double(3, thread_index()));
#pragma unroll
  for (int i = 0; i < kFmaPairs; ++i) {
    set(x[i], random_double(1, kFmaPairs * thread_index() + i));
    set(y[i], random_double(2, kFmaPairs * thread_index() + i));
  }
  const Elapsed start = clock_now();
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
    for (int step = 0; step < kFmaSteps; ++step) {
#pragma unroll
      for (int i = 0; i < kFmaPairs; ++i) x[i] = multiply_add(turn, y[i], x[i]);
#pragma unroll
      for (int i = 0; i < kFmaPairs; ++i) y[i] = multiply_add(-turn, x[i], y[i]);
    }
  }
  Value sum = x[0] + y[0];
#pragma unroll
  for (int i = 1; i < kFmaPairs; ++i) sum = sum + x[i] + y[i];
  sink[thread_index()] = sum;
  write_elapsed(start, elapsed);
}

}  // namespace calibrate
