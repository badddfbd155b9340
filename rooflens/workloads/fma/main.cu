// fma: a chain of multiply-adds on every element. `iters` moves one kernel along the whole roofline.
//
// An element costs 2 iters FLOP and 8 bytes: x read (4), y written (4). Intensity = iters / 4 FLOP/B:
// 16 at iters 64, close to the fp32 ridge of data-centre GPUs; 128 at iters 512, right of every ridge.
// One thread holds four independent chains, so the latency of one FMA is covered by the others.
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;
// z -> c z + d goes slowly to 0.5: values stay near 1 and each iteration still shows in the result.
constexpr float kC = 1.0f - 0x1p-10f;
constexpr float kD = 0x1p-11f;

__global__ void fma_chain(long long vectors, int iters, float c, float d, const float4* __restrict__ x,
                          float4* __restrict__ y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  float4 z = x[i];
#pragma unroll 16
  for (int t = 0; t < iters; ++t) {
    z.x = fmaf(z.x, c, d);
    z.y = fmaf(z.y, c, d);
    z.z = fmaf(z.z, c, d);
    z.w = fmaf(z.w, c, d);
  }
  y[i] = z;
}

double reference(double z, long long iters) {
  for (long long t = 0; t < iters; ++t) z = static_cast<double>(kC) * z + kD;
  return z;
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
  const long long n = arguments.take("n", 1LL << 26, 4, 1LL << 33);
  const long long iters = arguments.take("iters", 512, 1, 1 << 20);
  arguments.finish();
  rooflens::require(n % 4 == 0, "`--n` must be a multiple of 4: a thread takes four elements");
  rooflens::require_gpu();

  const rooflens::RandomFloat source{1};
  const rooflens::DeviceArray<float> x(n);
  const rooflens::DeviceArray<float> y(n);
  x.fill(source);
  const unsigned blocks = rooflens::blocks_for(n / 4, kThreads);
  const auto launch = [&] {
    fma_chain<<<blocks, kThreads>>>(n / 4, static_cast<int>(iters), kC, kD, x.as<const float4>(), y.as<float4>());
  };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{tolerance_of(iters)};
  if (arguments.check()) check = compare(y.download(), iters, source);
  return rooflens::answer("fma", arguments, timing, check);
}
