// roofline: SAXPY and a chain of multiply-adds of ten lengths: eleven kernels along the whole roofline, in one program.
//
// SAXPY costs 2 FLOP and 12 bytes an element, 0.17 FLOP/B: nothing but memory. A chain of 1, 2, 4, ... 512 multiply-adds
// costs 2 FLOP each and 8 bytes an element: 0.25, 0.5, 1, ... 128 FLOP/B. What the first reaches is the slope, what the
// last reaches is the flat roof, and the ones between must lie below the lower of the two.
// `--table 1` prints on stderr what each reached beside that prediction, from the fastest of `--repeats` runs, and a
// checklist of whether to trust it. This file and common.cuh are all there is to compile, with nvcc or with hipcc.
#include "../common.cuh"

#include <utility>

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

// Returns the time of the fastest of `repeats` runs of a step.
double fastest_ns(const Step& step, const Operands& on, long long repeats) {
  const auto launch = [&] { step.launch(on); };
  rooflens::warm_up(launch);
  double least_ns = std::numeric_limits<double>::infinity();
  for (long long r = 0; r < repeats; ++r) least_ns = std::min(least_ns, rooflens::kernel_time_ns(1, launch));
  return least_ns;
}

double flop_per_ns(const Step& step, const Operands& on, double time_ns) {
  return 2.0 * step.multiply_adds * static_cast<double>(on.n) / time_ns;
}

double bytes_per_ns(const Step& step, const Operands& on, double time_ns) {
  return step.bytes * static_cast<double>(on.n) / time_ns;
}

constexpr const Step& kSaxpy = kSteps[0];
constexpr const Step& kLongest = kSteps[kCount - 1];

// Prints each step beside the roofline that SAXPY's bytes and the longest chain's FLOP draw.
void print_table(const Operands& on, const double (&least_ns)[kCount]) {
  const double bandwidth = bytes_per_ns(kSaxpy, on, least_ns[0]);
  const double peak = flop_per_ns(kLongest, on, least_ns[kCount - 1]);
  std::fprintf(stderr, "SAXPY %.4g GB/s, the longest chain %.4g GFLOP/s, ridge at %.3g FLOP/B\n", bandwidth, peak,
               peak / bandwidth);
  std::fprintf(stderr, "  FLOP/B  predicted GFLOP/s  measured GFLOP/s  bound by\n");
  for (long long s = 0; s < kCount; ++s) {
    const double intensity = 2.0 * kSteps[s].multiply_adds / kSteps[s].bytes;
    const double slope = intensity * bandwidth;
    std::fprintf(stderr, "%8.4g  %17.5g  %16.5g  %s\n", intensity, std::min(slope, peak),
                 flop_per_ns(kSteps[s], on, least_ns[s]), slope < peak ? "memory" : "compute");
  }
}

constexpr int kRuns = 3;
constexpr double kStable = 0.60;   // of the best run's rate: less means that something else used the GPU
constexpr double kPlateau = 0.03;  // a rate that changes by less has reached what limits it

void print_check(bool passes, const std::string& what, double found, const char* limit) {
  std::fprintf(stderr, "%s  %s: %.1f %%, %s\n", passes ? "pass" : "FAIL", what.c_str(), 100.0 * found, limit);
}

// Prints whether the two roofs can be trusted: repeatable, flat, of the right class, the same at other sizes.
// The arrays hold twice `on.n`.
void print_checklist(const Operands& on, long long repeats, const double (&least_ns)[kCount]) {
  double best_ns = least_ns[0];
  double slowest_ns = least_ns[0];
  for (int run = 1; run < kRuns; ++run) {
    const double time_ns = fastest_ns(kSaxpy, on, repeats);
    best_ns = std::min(best_ns, time_ns);
    slowest_ns = std::max(slowest_ns, time_ns);
  }
  const double stable = best_ns / slowest_ns;
  print_check(stable >= kStable, "SAXPY's slowest of 3 runs, of the GB/s of the best", stable, "at least 60 %");

  for (long long s = kCount - 2; s < kCount; ++s) {
    const double gain =
        flop_per_ns(kSteps[s], on, least_ns[s]) / flop_per_ns(kSteps[s - 1], on, least_ns[s - 1]) - 1.0;
    const std::string what = "a chain of " + std::to_string(kSteps[s].multiply_adds) + ", over the GFLOP/s of one of " +
                             std::to_string(kSteps[s - 1].multiply_adds);
    print_check(gain < kPlateau, what, gain, "less than 3 %");
  }

  const double plateau = flop_per_ns(kLongest, on, least_ns[kCount - 1]);
  for (const auto& [n, name] : {std::pair{on.n / 8 * 4, "half"}, std::pair{2 * on.n, "double"}}) {
    const Operands other{n, on.x, on.y, on.z, rooflens::blocks_for(n / 4, kThreads)};
    const double change = flop_per_ns(kLongest, other, fastest_ns(kLongest, other, repeats)) / plateau - 1.0;
    print_check(std::abs(change) < kPlateau, std::string("the longest chain at ") + name + " the elements", change,
                "within 3 %");
  }

  const double ridge = plateau / bytes_per_ns(kSaxpy, on, best_ns);
  const double saxpy = 2.0 / kSaxpy.bytes;
  std::fprintf(stderr, "%s  SAXPY is bound by memory: %.4f FLOP/B, the ridge is at %.3g\n",
               saxpy < ridge ? "pass" : "FAIL", saxpy, ridge);
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 26, 4, 1LL << 33);
  const long long table = arguments.take("table", 0, 0, 1);
  const long long repeats = arguments.take("repeats", 5, 1, 1000);
  arguments.finish();
  rooflens::require(n % 4 == 0, "`--n` must be a multiple of 4: a thread takes four elements");
  rooflens::require(table == 0 || n >= 8, "`--table` needs a `--n` of 8 or more: half of it is run, too");
  rooflens::require_gpu();

  const rooflens::RandomFloat x_source{1};
  const rooflens::RandomFloat y_source{2};
  const long long most = table != 0 ? 2 * n : n;
  const rooflens::DeviceArray<float> x(most);
  const rooflens::DeviceArray<float> y(most);
  const rooflens::DeviceArray<float> z(most);
  x.fill(x_source);
  const Operands on{n, x.data(), y.data(), z.data(), rooflens::blocks_for(n / 4, kThreads)};
  const auto launch = [&] {
    for (const Step& step : kSteps) step.launch(on);
  };
  rooflens::warm_up(launch);
  if (table != 0) {
    double least_ns[kCount];
    for (long long s = 0; s < kCount; ++s) least_ns[s] = fastest_ns(kSteps[s], on, repeats);
    print_table(on, least_ns);
    print_checklist(on, repeats, least_ns);
  }
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
