// stencil: a fourth-order Laplacian in three dimensions, in fp64: memory-bound, unless an SM has two fp64 units only.
//
// out = sum of 13 weighted points: the centre, and two to each side along x, y and z. A multiplication and 12
// multiply-adds are 25 FLOP; read once and written once a point is 16 bytes: 1.56 FLOP/B. The ridge of fp64 lies at 10
// FLOP/B on an H100, at 1.3 on an RTX 4090 and at 0.6 on an RTX 3090.
// The grid has n points a side and a margin of two, which is read and never written. A thread goes up in z with the five
// points of its column in registers; its eight neighbours in the plane come from L1.
#include "../common.cuh"

namespace {

constexpr int kReach = 2;      // points to each side
constexpr int kThreadsX = 32;
constexpr int kThreadsY = 8;
constexpr int kPlanes = 32;    // that a thread goes up
// Second derivative at order four: -1/12, 4/3, -5/2, 4/3, -1/12; the centre once for each of three dimensions.
constexpr double kCentre = -7.5;
constexpr double kNear = 4.0 / 3.0;
constexpr double kFar = -1.0 / 12.0;

__global__ void __launch_bounds__(kThreadsX * kThreadsY)
    laplacian_fp64(int n, const double* __restrict__ in, double* __restrict__ out) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= n || y >= n) return;
  const long long row = n + 2 * kReach;
  const long long plane = row * row;
  const int first = static_cast<int>(blockIdx.z) * kPlanes;
  const int last = n - first < kPlanes ? n : first + kPlanes;
  long long i = (first + kReach) * plane + (y + kReach) * row + x + kReach;
  double below_far = in[i - 2 * plane];
  double below = in[i - plane];
  double here = in[i];
  double above = in[i + plane];
  for (int z = first; z < last; ++z, i += plane) {
    const double above_far = in[i + 2 * plane];
    double sum = kCentre * here;
    sum = fma(kNear, in[i - 1], sum);
    sum = fma(kNear, in[i + 1], sum);
    sum = fma(kNear, in[i - row], sum);
    sum = fma(kNear, in[i + row], sum);
    sum = fma(kNear, below, sum);
    sum = fma(kNear, above, sum);
    sum = fma(kFar, in[i - 2], sum);
    sum = fma(kFar, in[i + 2], sum);
    sum = fma(kFar, in[i - 2 * row], sum);
    sum = fma(kFar, in[i + 2 * row], sum);
    sum = fma(kFar, below_far, sum);
    sum = fma(kFar, above_far, sum);
    out[i] = sum;
    below_far = below;
    below = here;
    here = above;
    above = above_far;
  }
}

constexpr double kRounding = 0x1p-53;
constexpr double kTolerance = 13.0 * kRounding;  // a rounding a step, of at most the magnitude of the sum

rooflens::Check compare(const std::vector<double>& result, long long n, rooflens::RandomFloat in) {
  rooflens::Check check{kTolerance};
  const long long row = n + 2 * kReach;
  const long long plane = row * row;
  const rooflens::Sample sample(n * n * n, 13);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long point = sample.at(s);
    const long long z = point / (n * n) + kReach;
    const long long y = point / n % n + kReach;
    const long long i = z * plane + y * row + point % n + kReach;
    long double sum = static_cast<long double>(kCentre) * in(i);
    double magnitude = std::abs(static_cast<double>(sum));
    for (const long long along : {1LL, row, plane}) {
      for (int steps = 1; steps <= kReach; ++steps) {
        const double weight = steps == 1 ? kNear : kFar;
        for (const long long at : {i - steps * along, i + steps * along}) {
          sum += static_cast<long double>(weight) * in(at);
          magnitude += std::abs(weight * in(at));
        }
      }
    }
    check.compare(result[static_cast<std::size_t>(i)], static_cast<double>(sum), magnitude);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 512, 1, 2048);
  arguments.finish();
  rooflens::require_gpu();

  const rooflens::RandomFloat source{1};
  const long long points = (n + 2 * kReach) * (n + 2 * kReach) * (n + 2 * kReach);
  const rooflens::DeviceArray<double> in(points);
  const rooflens::DeviceArray<double> out(points);
  in.fill(source);
  const int edge = static_cast<int>(n);
  const dim3 block(kThreadsX, kThreadsY);
  const dim3 grid(rooflens::blocks_for(n, kThreadsX), rooflens::blocks_for(n, kThreadsY),
                  rooflens::blocks_for(n, kPlanes));
  const auto launch = [&] { laplacian_fp64<<<grid, block>>>(edge, in.data(), out.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{kTolerance};
  if (arguments.check()) check = compare(out.download(), n, source);
  return rooflens::answer("stencil", arguments, timing, check);
}
