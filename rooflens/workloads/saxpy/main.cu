// saxpy: y = a x + y. The plainest kernel at the HBM wall.
//
// An element costs 2 FLOP and 12 bytes: x read (4), y read (4), y written (4). 0.17 FLOP/B, far left of every ridge.
// One thread takes four elements, 16 bytes a load: enough bytes in flight to fill the memory of the fastest GPUs.
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;
constexpr float kA = 0.75f;
constexpr long long kSampleSteps = 64;  // a result from anywhere in 1 GiB takes the CPU as long as so many steps

__global__ void saxpy(long long n, float a, const float* __restrict__ x, float* __restrict__ y) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long vectors = n / 4;
  if (i < vectors) {
    const float4 xs = reinterpret_cast<const float4*>(x)[i];
    float4 ys = reinterpret_cast<float4*>(y)[i];
    ys.x = fmaf(a, xs.x, ys.x);
    ys.y = fmaf(a, xs.y, ys.y);
    ys.z = fmaf(a, xs.z, ys.z);
    ys.w = fmaf(a, xs.w, ys.w);
    reinterpret_cast<float4*>(y)[i] = ys;
  } else if (i == vectors) {
#pragma unroll 1
    for (long long rest = 4 * vectors; rest < n; ++rest) y[rest] = fmaf(a, x[rest], y[rest]);
  }
}

// Every iteration adds a x once more. Each addition rounds a sum that is at most |y| + iterations |a x|.
rooflens::Check compare(const std::vector<float>& result, long long iterations, rooflens::RandomFloat x,
                        rooflens::RandomFloat y) {
  const double times = static_cast<double>(iterations);
  rooflens::Check check{times * rooflens::kFloatRounding};
  const rooflens::Sample sample(static_cast<long long>(result.size()), kSampleSteps);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    const double added = times * kA * x(i);
    check.compare(result[static_cast<std::size_t>(i)], y(i) + added, std::abs(y(i)) + std::abs(added));
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 28, 1, 1LL << 33);
  arguments.finish();
  rooflens::require_gpu();

  const rooflens::RandomFloat x_source{1};
  const rooflens::RandomFloat y_source{2};
  const rooflens::DeviceArray<float> x(n);
  const rooflens::DeviceArray<float> y(n);
  x.fill(x_source);
  y.fill(y_source);
  const unsigned blocks = rooflens::blocks_for(n / 4 + 1, kThreads);
  const auto launch = [&] { saxpy<<<blocks, kThreads>>>(n, kA, x.data(), y.data()); };
  rooflens::warm_up(launch);
  y.fill(y_source);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{static_cast<double>(arguments.iterations()) * rooflens::kFloatRounding};
  if (arguments.check()) check = compare(y.download(), arguments.iterations(), x_source, y_source);
  return rooflens::answer("saxpy", arguments, timing, check);
}
