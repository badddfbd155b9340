// spill: a thread works on 72 values at a time and may have 64 registers. The rest lives in local memory.
//
// 2 FLOP a value and iteration, 72 values of 4 bytes read and written once by each thread. What does not fit is stored and
// loaded again in every iteration, some 25 values on every architecture: traffic of L1 that no line of the source asks for,
// about 100 KiB of it for the 1024 threads of an SM. `spilled` 0 is the same loop with as many registers as it wants.
// The bound is 256 threads in four blocks on an SM: 65536 / 1024 = 64 registers, on every architecture.
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kHeld = 72;  // values of a thread
// v -> c v + d goes slowly to 0.5: values stay near 1 and each iteration still shows in the result.
constexpr float kC = 1.0f - 0x1p-10f;
constexpr float kD = 0x1p-11f;

// The values of a thread stand `threads` apart, so that a warp reads and writes whole lines.
__device__ inline void iterate(long long threads, int iters, float c, float d, const float* __restrict__ x,
                               float* __restrict__ y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= threads) return;
  float held[kHeld];
#pragma unroll
  for (int j = 0; j < kHeld; ++j) held[j] = x[j * threads + i];
#pragma unroll 1  // more iterations at a time would need fewer trips
  for (int t = 0; t < iters; ++t) {
#pragma unroll
    for (int j = 0; j < kHeld; ++j) held[j] = fmaf(held[j], c, d);
  }
#pragma unroll
  for (int j = 0; j < kHeld; ++j) y[j * threads + i] = held[j];
}

__global__ void __launch_bounds__(kThreads, 4)
    spilled(long long threads, int iters, float c, float d, const float* __restrict__ x, float* __restrict__ y) {
  iterate(threads, iters, c, d, x, y);
}

__global__ void __launch_bounds__(kThreads)
    in_registers(long long threads, int iters, float c, float d, const float* __restrict__ x, float* __restrict__ y) {
  iterate(threads, iters, c, d, x, y);
}

double reference(double value, long long iters) {
  for (long long t = 0; t < iters; ++t) value = static_cast<double>(kC) * value + kD;
  return value;
}

// An FMA rounds a value of at most 1 by 2^-24, and c shrinks old errors by 2^-10 a step: at most 1024 of them live.
double tolerance_of(long long iters) { return static_cast<double>(std::min(iters, 1024LL)) * rooflens::kFloatRounding; }

rooflens::Check compare(const std::vector<float>& result, long long iters, rooflens::RandomFloat x) {
  rooflens::Check check{tolerance_of(iters)};
  const rooflens::Sample sample(static_cast<long long>(result.size()), iters);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    check.compare(result[static_cast<std::size_t>(i)], reference(x(i), iters), 1.0);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long threads = arguments.take("threads", 1LL << 20, 1, 1LL << 26);
  const long long iters = arguments.take("iters", 512, 1, 1 << 20);
  const bool has_few = arguments.take("spilled", 1, 0, 1) != 0;
  arguments.finish();
  rooflens::require_gpu();

  const rooflens::RandomFloat source{1};
  const rooflens::DeviceArray<float> x(threads * kHeld);
  const rooflens::DeviceArray<float> y(threads * kHeld);
  x.fill(source);
  const unsigned blocks = rooflens::blocks_for(threads, kThreads);
  const int times = static_cast<int>(iters);
  const auto launch = [&] {
    if (has_few) {
      spilled<<<blocks, kThreads>>>(threads, times, kC, kD, x.data(), y.data());
    } else {
      in_registers<<<blocks, kThreads>>>(threads, times, kC, kD, x.data(), y.data());
    }
  };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{tolerance_of(iters)};
  if (arguments.check()) check = compare(y.download(), iters, source);
  return rooflens::answer("spill", arguments, timing, check);
}
