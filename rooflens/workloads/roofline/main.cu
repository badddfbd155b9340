// roofline: SAXPY and a chain of multiply-adds of ten lengths: eleven kernels along the whole roofline, in one program.
//
// SAXPY costs 2 FLOP and 12 bytes an element, 0.17 FLOP/B: nothing but memory. A chain of 1, 2, 4, ... 512 multiply-adds
// costs 2 FLOP each and 8 bytes an element: 0.25, 0.5, 1, ... 128 FLOP/B. What the first reaches is the slope, what the
// last reaches is the flat roof, and the ones between must lie below the lower of the two.
// `--table 1` prints on stderr what each reached beside that prediction, from the fastest of `--repeats` runs. This file
// and common.cuh are all there is to compile, with nvcc or with hipcc.
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;
constexpr float kA = 0.75f;
// z -> c z + d goes slowly to 0.5: values stay near 1 and each multiply-add still shows in the result.
constexpr float kC = 1.0f - 0x1p-10f;
constexpr float kD = 0x1p-11f;
constexpr long long kSampleSteps = 1024;

__global__ void roofline_saxpy(long long vectors, float a, const float4* __restrict__ x, float4* __restrict__ y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  const float4 xs = x[i];
  float4 ys = y[i];
  ys.x = fmaf(a, xs.x, ys.x);
  ys.y = fmaf(a, xs.y, ys.y);
  ys.z = fmaf(a, xs.z, ys.z);
  ys.w = fmaf(a, xs.w, ys.w);
  y[i] = ys;
}

// One thread holds four independent chains, so the latency of one FMA is covered by the others.
template <int steps>
__global__ void roofline_fma(long long vectors, float c, float d, const float4* __restrict__ x, float4* __restrict__ z) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  float4 held = x[i];
#pragma unroll 16
  for (int t = 0; t < steps; ++t) {
    held.x = fmaf(held.x, c, d);
    held.y = fmaf(held.y, c, d);
    held.z = fmaf(held.z, c, d);
    held.w = fmaf(held.w, c, d);
  }
  z[i] = held;
}

struct Operands {
  long long n;
  const float* x;
  float* y;
  float* z;
  unsigned blocks;
};

template <int steps>
void launch_fma(const Operands& on) {
  const auto* x = reinterpret_cast<const float4*>(on.x);
  auto* z = reinterpret_cast<float4*>(on.z);
  roofline_fma<steps><<<on.blocks, kThreads>>>(on.n / 4, kC, kD, x, z);
}

void launch_saxpy(const Operands& on) {
  const auto* x = reinterpret_cast<const float4*>(on.x);
  auto* y = reinterpret_cast<float4*>(on.y);
  roofline_saxpy<<<on.blocks, kThreads>>>(on.n / 4, kA, x, y);
}

struct Step {
  int multiply_adds;  // an element
  int bytes;          // an element
  void (*launch)(const Operands&);
};

constexpr Step kSteps[] = {
    {1, 12, launch_saxpy},     {1, 8, launch_fma<1>},     {2, 8, launch_fma<2>},    {4, 8, launch_fma<4>},
    {8, 8, launch_fma<8>},     {16, 8, launch_fma<16>},   {32, 8, launch_fma<32>},  {64, 8, launch_fma<64>},
    {128, 8, launch_fma<128>}, {256, 8, launch_fma<256>}, {512, 8, launch_fma<512>},
};
constexpr long long kCount = sizeof kSteps / sizeof kSteps[0];

// Every iteration adds a x once more. Each addition rounds a sum that is at most |y| + iterations |a x|.
void compare_saxpy(rooflens::Check& check, const Operands& on, const std::vector<float>& result, long long times,
                   rooflens::RandomFloat x, rooflens::RandomFloat y) {
  const rooflens::Sample sample(on.n, kSampleSteps);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    const double added = static_cast<double>(times) * kA * x(i);
    check.compare(result[static_cast<std::size_t>(i)], y(i) + added, std::abs(y(i)) + std::abs(added));
  }
}

void compare_fma(rooflens::Check& check, const Operands& on, const std::vector<float>& result, int steps,
                 rooflens::RandomFloat x) {
  const rooflens::Sample sample(on.n, kSampleSteps);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    double z = x(i);
    for (int t = 0; t < steps; ++t) z = static_cast<double>(kC) * z + kD;
    check.compare(result[static_cast<std::size_t>(i)], z, 1.0);
  }
}

// Prints each step beside the roofline that SAXPY's bytes and the longest chain's FLOP draw.
void print_table(const Operands& on, long long repeats) {
  double least_ns[kCount];
  for (long long s = 0; s < kCount; ++s) {
    least_ns[s] = std::numeric_limits<double>::infinity();
    const auto launch = [&] { kSteps[s].launch(on); };
    rooflens::warm_up(launch);
    for (long long r = 0; r < repeats; ++r) least_ns[s] = std::min(least_ns[s], rooflens::kernel_time_ns(1, launch));
  }
  const double n = static_cast<double>(on.n);
  const double bytes_per_ns = kSteps[0].bytes * n / least_ns[0];
  const double flop_per_ns = 2.0 * kSteps[kCount - 1].multiply_adds * n / least_ns[kCount - 1];
  std::fprintf(stderr, "SAXPY %.4g GB/s, the longest chain %.4g GFLOP/s, ridge at %.3g FLOP/B\n", bytes_per_ns,
               flop_per_ns, flop_per_ns / bytes_per_ns);
  std::fprintf(stderr, "  FLOP/B  predicted GFLOP/s  measured GFLOP/s  bound by\n");
  for (long long s = 0; s < kCount; ++s) {
    const double flop = 2.0 * kSteps[s].multiply_adds;
    const double slope = flop / kSteps[s].bytes * bytes_per_ns;
    std::fprintf(stderr, "%8.4g  %17.5g  %16.5g  %s\n", flop / kSteps[s].bytes, std::min(slope, flop_per_ns),
                 flop * n / least_ns[s], slope < flop_per_ns ? "memory" : "compute");
  }
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 26, 4, 1LL << 33);
  const long long table = arguments.take("table", 0, 0, 1);
  const long long repeats = arguments.take("repeats", 5, 1, 1000);
  arguments.finish();
  rooflens::require(n % 4 == 0, "`--n` must be a multiple of 4: a thread takes four elements");
  rooflens::require_gpu();

  const rooflens::RandomFloat x_source{1};
  const rooflens::RandomFloat y_source{2};
  const rooflens::DeviceArray<float> x(n);
  const rooflens::DeviceArray<float> y(n);
  const rooflens::DeviceArray<float> z(n);
  x.fill(x_source);
  const Operands on{n, x.data(), y.data(), z.data(), rooflens::blocks_for(n / 4, kThreads)};
  const auto launch = [&] {
    for (const Step& step : kSteps) step.launch(on);
  };
  rooflens::warm_up(launch);
  if (table != 0) print_table(on, repeats);
  y.fill(y_source);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, kCount, launch);
  // An FMA rounds a value of at most 1 by 2^-24; SAXPY as often as it was repeated.
  const double roundings = static_cast<double>(std::max<long long>(arguments.iterations(), 512));
  rooflens::Check check{roundings * rooflens::kFloatRounding};
  if (arguments.check()) {
    compare_saxpy(check, on, y.download(), arguments.iterations(), x_source, y_source);
    for (long long s = 1; s < kCount; ++s) {
      kSteps[s].launch(on);
      ROOFLENS_CUDA(cudaDeviceSynchronize());
      compare_fma(check, on, z.download(), kSteps[s].multiply_adds, x_source);
    }
  }
  return rooflens::answer("roofline", arguments, timing, check);
}
