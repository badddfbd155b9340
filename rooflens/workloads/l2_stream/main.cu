// l2_stream: all SMs read a small buffer again and again. It comes out of L2 each time: the L2 wall.
//
// A read moves 16 bytes from L2 to an SM and costs 4 FLOP (they keep the loads alive): 0.25 FLOP/B at L2.
// L2 traffic = 16 threads repeats bytes; DRAM sees the buffer once (4 n) and the sums (4 threads).
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;

__global__ void l2_stream(int vectors, int repeats, int stride, const float4* __restrict__ buffer,
                          float* __restrict__ sums) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int mask = vectors - 1;
  int position = thread & mask;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
  for (int r = 0; r < repeats; ++r) {
    const float4 value = __ldcg(buffer + position);  // .cg: cached in L2, not in L1
    sum.x += value.x;
    sum.y += value.y;
    sum.z += value.z;
    sum.w += value.w;
    position = (position + stride) & mask;
  }
  sums[thread] = (sum.x + sum.y) + (sum.z + sum.w);
}

// The stride is odd, so that a thread meets every vector of the buffer before it meets one twice.
constexpr int kStride = 4097;

double tolerance_of(long long repeats) {
  return std::sqrt(4.0 * static_cast<double>(repeats)) * rooflens::kFloatRounding;
}

rooflens::Check compare(const std::vector<float>& result, long long vectors, long long repeats,
                        rooflens::RandomFloat buffer) {
  rooflens::Check check{tolerance_of(repeats)};
  const rooflens::Sample sample(static_cast<long long>(result.size()), 4 * repeats);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long thread = sample.at(s);
    double sum = 0.0;
    double magnitude = 0.0;
    for (long long r = 0; r < repeats; ++r) {
      const long long vector = (thread + r * kStride) % vectors;
      for (int lane = 0; lane < 4; ++lane) {
        sum += buffer(4 * vector + lane);
        magnitude += std::abs(buffer(4 * vector + lane));
      }
    }
    check.compare(result[static_cast<std::size_t>(thread)], sum, magnitude);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 19, 16, 1LL << 30);
  const long long threads = arguments.take("threads", 1LL << 19, kThreads, 1LL << 30);
  const long long repeats = arguments.take("repeats", 256, 1, 1LL << 20);
  arguments.finish();
  rooflens::require((n & (n - 1)) == 0, "`--n` must be a power of two");
  rooflens::require(threads % kThreads == 0, "`--threads` must be a multiple of 256");
  rooflens::require_gpu();

  const rooflens::RandomFloat source{1};
  const rooflens::DeviceArray<float> buffer(n);
  const rooflens::DeviceArray<float> sums(threads);
  buffer.fill(source);
  const unsigned blocks = rooflens::blocks_for(threads, kThreads);
  const int vectors = static_cast<int>(n / 4);
  const int times = static_cast<int>(repeats);
  const auto launch = [&] {
    l2_stream<<<blocks, kThreads>>>(vectors, times, kStride, buffer.as<const float4>(), sums.data());
  };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{tolerance_of(repeats)};
  if (arguments.check()) check = compare(sums.download(), vectors, repeats, source);
  return rooflens::answer("l2_stream", arguments, timing, check);
}
