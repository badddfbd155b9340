// fp16_fma: a chain of packed half-precision multiply-adds. The fp16 rate of the CUDA cores, not of the tensor cores.
//
// HFMA2 works on two halves at once: 4 FLOP an instruction and thread. An element costs 2 iters FLOP and 4 bytes:
// x read (2), y written (2). Intensity = iters / 2 FLOP/B: 4 at iters 8, 256 at iters 512.
// One thread holds four independent chains of two halves each: 16 bytes.
#include "../common.cuh"

#include <cuda_fp16.h>

namespace {

constexpr int kThreads = 256;
constexpr int kHalvesEach = 8;
// With c = 1 and d = 2^-10 a multiple of 2^-10 stays one, and fp16 holds all of them below 2: the result is exact.
constexpr float kC = 1.0f;
constexpr float kD = 0x1p-10f;
constexpr long long kMaxIters = 1024;

__global__ void fp16_fma(long long vectors, int iters, __half2 c, __half2 d, const uint4* __restrict__ x,
                         uint4* __restrict__ y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  uint4 held = x[i];
  __half2* z = reinterpret_cast<__half2*>(&held);
#pragma unroll 16
  for (int t = 0; t < iters; ++t) {
#pragma unroll
    for (int pair = 0; pair < kHalvesEach / 2; ++pair) z[pair] = __hfma2(z[pair], c, d);
  }
  y[i] = held;
}

rooflens::Check compare(const std::vector<__half>& result, long long iters, rooflens::RandomHalf x) {
  rooflens::Check check{0.0};
  const rooflens::Sample sample(static_cast<long long>(result.size()), iters);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    double z = x(i);
    for (long long t = 0; t < iters; ++t) z = z * kC + kD;
    check.compare(__half2float(result[static_cast<std::size_t>(i)]), z, 1.0);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 27, kHalvesEach, 1LL << 34);
  const long long iters = arguments.take("iters", 512, 1, kMaxIters);
  arguments.finish();
  rooflens::require(n % kHalvesEach == 0, "`--n` must be a multiple of 8: a thread takes eight halves");
  rooflens::require_gpu();

  const rooflens::RandomHalf source{1};
  const rooflens::DeviceArray<__half> x(n);
  const rooflens::DeviceArray<__half> y(n);
  x.fill(source);
  const unsigned blocks = rooflens::blocks_for(n / kHalvesEach, kThreads);
  const __half2 c = __float2half2_rn(kC);
  const __half2 d = __float2half2_rn(kD);
  const int times = static_cast<int>(iters);
  const auto launch = [&] {
    fp16_fma<<<blocks, kThreads>>>(n / kHalvesEach, times, c, d, x.as<const uint4>(), y.as<uint4>());
  };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(y.download(), iters, source);
  return rooflens::answer("fp16_fma", arguments, timing, check);
}
