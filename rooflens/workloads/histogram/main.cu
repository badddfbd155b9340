// histogram: how often each of 256 values occurs among n bytes, counted by atomics: in L2, or in shared memory first.
//
// No FLOP; n bytes read once, and counts of 1 KiB that stay in caches. In the first way every byte is an atomic addition
// that L2 carries out, in 32 sectors that lie in a few of its slices: the others have nothing to do. In the second a block
// counts in shared memory and adds its 256 sums at the end; the 32 lanes of a warp meet in banks and in counters.
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kBins = 256;
constexpr int kVectors = 16;  // of 16 bytes, that a thread reads
constexpr int kVectorBytes = 16;
static_assert(kThreads == kBins, "every thread clears and adds one counter");

struct RandomByte {
  __host__ __device__ unsigned char operator()(long long index) const {
    return static_cast<unsigned char>(rooflens::random_bits(1, index) >> 56);
  }
};

struct Zero {
  __host__ __device__ unsigned operator()(long long) const { return 0; }
};

template <typename Count>
__device__ void for_each_byte(long long vectors, const uint4* __restrict__ data, Count count) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += stride) {
    const uint4 vector = data[i];
    const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
    for (int byte = 0; byte < kVectorBytes; ++byte) count(words[byte / 4] >> (byte % 4 * 8) & 0xff);
  }
}

__global__ void __launch_bounds__(kThreads)
    histogram_global(long long vectors, const uint4* __restrict__ data, unsigned* __restrict__ counts) {
  for_each_byte(vectors, data, [&](unsigned value) { atomicAdd(&counts[value], 1u); });
}

__global__ void __launch_bounds__(kThreads)
    histogram_shared(long long vectors, const uint4* __restrict__ data, unsigned* __restrict__ counts) {
  __shared__ unsigned own[kBins];
  own[threadIdx.x] = 0;
  __syncthreads();
  for_each_byte(vectors, data, [&](unsigned value) { atomicAdd(&own[value], 1u); });
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

// Counters add up over all launches, and wrap as an unsigned does.
rooflens::Check compare(const std::vector<unsigned>& result, long long n, long long launches, RandomByte source) {
  rooflens::Check check{0.0};
  std::vector<unsigned> counts(kBins);
  for (long long i = 0; i < n; ++i) ++counts[source(i)];
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    check.compare(result[bin], counts[bin] * static_cast<unsigned>(launches), 1.0);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 28, kVectorBytes, 1LL << 32);
  const bool in_shared = arguments.take("shared", 0, 0, 1) != 0;
  arguments.finish();
  rooflens::require(n % kVectorBytes == 0, "`--n` must be a multiple of 16: a thread reads 16 bytes at a time");
  rooflens::require_gpu();

  const RandomByte source;
  const rooflens::DeviceArray<unsigned char> data(n);
  const rooflens::DeviceArray<unsigned> counts(kBins);
  data.fill(source);
  counts.fill(Zero{});
  const long long vectors = n / kVectorBytes;
  const unsigned blocks = rooflens::blocks_for((vectors + kVectors - 1) / kVectors, kThreads);
  const auto launch = [&] {
    if (in_shared) {
      histogram_shared<<<blocks, kThreads>>>(vectors, data.as<const uint4>(), counts.data());
    } else {
      histogram_global<<<blocks, kThreads>>>(vectors, data.as<const uint4>(), counts.data());
    }
  };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(counts.download(), n, rooflens::kWarmUps + timing.launches, source);
  return rooflens::answer("histogram", arguments, timing, check);
}
