// gather: out[i] = table[index[i]], every index in a sector of its own. Latency with few threads, HBM with many.
//
// Memory moves in sectors of 32 bytes and a gather uses 4 of them. An element costs at least 40 bytes: its index read
// (4), one sector read (32), the result written (4). The second load waits for the first: two latencies one after the
// other, which only other threads can hide. `blocks` says how many there are.
#include "../common.cuh"

namespace {

constexpr int kThreads = 128;
constexpr int kSectorFloats = 8;

// A mixing of the numbers below 2^bits: each step can be undone, so no two positions share a sector.
struct ScatteredIndex {
  int bits;
  __host__ __device__ std::uint32_t operator()(long long position) const {
    const std::uint32_t mask = (1u << bits) - 1u;
    std::uint32_t sector = static_cast<std::uint32_t>(position) & mask;
    for (int round = 0; round < 3; ++round) {
      sector = (sector * 0x9E3779B1u) & mask;
      sector ^= sector >> (bits / 2 + 1);
    }
    return sector * kSectorFloats;
  }
};

__global__ void gather(long long n, const std::uint32_t* __restrict__ index, const float* __restrict__ table,
                       float* __restrict__ out) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1  // one gather in flight for each thread: unrolling would hide the latency that is to be shown
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
    out[i] = table[index[i]];
  }
}

rooflens::Check compare(const std::vector<float>& result, ScatteredIndex index, rooflens::RandomFloat table) {
  rooflens::Check check{0.0};
  for (std::size_t i = 0; i < result.size(); ++i) {
    check.compare(result[i], table(index(static_cast<long long>(i))), 1.0);
  }
  return check;
}

int log2_of(long long power) {
  int bits = 0;
  while ((1LL << bits) < power) ++bits;
  rooflens::require((1LL << bits) == power, "`--table` must be a power of two");
  return bits;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1LL << 20, 1, 1LL << 28);
  const long long table_size = arguments.take("table", 1LL << 27, 16, 1LL << 31);
  const long long blocks = arguments.take("blocks", 16, 1, 1 << 24);
  arguments.finish();
  const ScatteredIndex index_source{log2_of(table_size / kSectorFloats)};
  rooflens::require(n <= table_size / kSectorFloats, "`--n` must be at most `--table` / 8: a sector for each element");
  rooflens::require_gpu();

  const rooflens::RandomFloat table_source{1};
  const rooflens::DeviceArray<float> table(table_size);
  const rooflens::DeviceArray<std::uint32_t> index(n);
  const rooflens::DeviceArray<float> out(n);
  table.fill(table_source);
  index.fill(index_source);
  const unsigned grid = static_cast<unsigned>(blocks);
  const auto launch = [&] { gather<<<grid, kThreads>>>(n, index.data(), table.data(), out.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(out.download(), index_source, table_source);
  return rooflens::answer("gather", arguments, timing, check);
}
