// int8_mma: every warp multiplies the same small matrices again and again. The int8 rate of the tensor cores.
//
// A warp keeps A (16x32) and eight B (32x8) in registers and adds their products `iters` times: eight independent
// accumulators cover the latency of one instruction. An iteration of a warp is 2*16*64*32 = 65536 operations.
// A warp moves 6656 bytes once: A (512), B (2048), C written (4096). Nothing but the tensor pipe is busy.
#include "../common.cuh"
#include "mma.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kM = 16;
constexpr int kN = 8;
constexpr int kK = 32;
constexpr int kChains = 8;
constexpr int kColumns = kChains * kN;
constexpr int kASize = kM * kK;        // row-major
constexpr int kBSize = kColumns * kK;  // column-major: the K values of a column stand together
constexpr int kCSize = kM * kColumns;  // row-major
// 32 products of at most 127^2, 4096 times, are the most that an int32 holds.
constexpr long long kMaxIters = 4096;

struct RandomInt8 {
  std::uint32_t seed;
  __host__ __device__ int operator()(long long index) const {
    return static_cast<int>((rooflens::random_bits(seed, index) >> 32) % 255) - 127;
  }
};

// Four int8 as one register; `offset` is a multiple of 4, so the word is aligned.
__device__ std::uint32_t word(const std::int8_t* values, int offset) {
  return *reinterpret_cast<const std::uint32_t*>(values + offset);
}

__global__ void int8_mma(int tiles, int iters, const std::int8_t* __restrict__ a, const std::int8_t* __restrict__ b,
                         int* __restrict__ c) {
  const int tile = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  if (tile >= tiles) return;  // a whole warp leaves or stays
  const int row = threadIdx.x % 32 / 4;
  const int part = threadIdx.x % 4;

  const std::int8_t* a_tile = a + static_cast<long long>(tile) * kASize;
  const std::uint32_t a_held[4] = {
      word(a_tile, row * kK + 4 * part), word(a_tile, (row + 8) * kK + 4 * part),
      word(a_tile, row * kK + 16 + 4 * part), word(a_tile, (row + 8) * kK + 16 + 4 * part)};
  const std::int8_t* b_tile = b + static_cast<long long>(tile) * kBSize;
  std::uint32_t b_held[kChains][2];
  int sums[kChains][4] = {};
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
    const int column = chain * kN + row;
    b_held[chain][0] = word(b_tile, column * kK + 4 * part);
    b_held[chain][1] = word(b_tile, column * kK + 16 + 4 * part);
  }

#pragma unroll 4
  for (int t = 0; t < iters; ++t) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) mma_16x8x32(sums[chain], a_held, b_held[chain]);
  }

  int* c_tile = c + static_cast<long long>(tile) * kCSize;
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c_tile[(row + e / 2 * 8) * kColumns + chain * kN + 2 * part + e % 2] = sums[chain][e];
    }
  }
}

// Whole numbers: the reference is exact, and so must the result be.
rooflens::Check compare(const std::vector<int>& result, long long iters, RandomInt8 a, RandomInt8 b) {
  rooflens::Check check{0.0};
  const rooflens::Sample sample(static_cast<long long>(result.size()), kK);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    const long long tile = i / kCSize;
    const long long row = i % kCSize / kColumns;
    const long long column = i % kColumns;
    long long sum = 0;
    for (long long k = 0; k < kK; ++k) sum += a(tile * kASize + row * kK + k) * b(tile * kBSize + column * kK + k);
    check.compare(result[static_cast<std::size_t>(i)], static_cast<double>(iters * sum), 1.0);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long tiles = arguments.take("tiles", 1LL << 14, 1, 1LL << 20);
  const long long iters = arguments.take("iters", 2048, 1, kMaxIters);
  arguments.finish();
  rooflens::require_gpu();

  const RandomInt8 a_source{1};
  const RandomInt8 b_source{2};
  const rooflens::DeviceArray<std::int8_t> a(tiles * kASize);
  const rooflens::DeviceArray<std::int8_t> b(tiles * kBSize);
  const rooflens::DeviceArray<int> c(tiles * kCSize);
  a.fill(a_source);
  b.fill(b_source);
  const unsigned blocks = rooflens::blocks_for(tiles * 32, kThreads);
  const int warps = static_cast<int>(tiles);
  const int times = static_cast<int>(iters);
  const auto launch = [&] { int8_mma<<<blocks, kThreads>>>(warps, times, a.data(), b.data(), c.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(c.download(), iters, a_source, b_source);
  return rooflens::answer("int8_mma", arguments, timing, check);
}
