// int8_wgmma: four warps multiply the same tiles in shared memory again and again. The int8 rate of Hopper's tensor cores.
//
// A block keeps A (128x128) and B (128x128) in shared memory and adds their product `iters` times: two groups of four
// warps, 64 rows of A each, so that one multiplies while the other waits. An iteration of a block is 2*128^3 = 4194304
// operations. A block moves 96 KiB once: A and B (16 KiB each), C written (64 KiB). Nothing but the tensor pipe is busy.
// Both operands stand in rows of K, 128 bytes, swizzled as wgmma expects: int8 has no other order.
// `int8_mma` does the same through `mma`, which on compute capability 9.0 stays below this roof.
#include "../common.cuh"
#include "../device.cuh"
#include "../hopper.cuh"

namespace {

constexpr int kTile = 128;           // rows and columns of C in a block, and k
constexpr int kGroups = 2;           // of four warps
constexpr int kGroupRows = kTile / kGroups;
constexpr int kK = 32;               // k in one multiplication
constexpr int kThreads = kGroups * hopper::kGroup;
constexpr int kOperand = kTile * kTile;
constexpr int kChunk = 16;           // bytes that change places together
// 128 products of at most 127^2, 1024 times, are the most that an int32 holds.
constexpr long long kMaxIters = 1024;

struct RandomInt8 {
  std::uint32_t seed;
  __host__ __device__ int operator()(long long index) const {
    return static_cast<int>((rooflens::random_bits(seed, index) >> 32) % 255) - 127;
  }
};

// Copies 128 rows of 128 bytes into shared memory, swizzled.
__device__ void load_rows(unsigned char* to, const std::int8_t* from) {
  for (int i = static_cast<int>(threadIdx.x); i < kOperand / kChunk; i += kThreads) {
    const int row = i / (hopper::kRowBytes / kChunk);
    const int chunk = i % (hopper::kRowBytes / kChunk);
    unsigned char* place = to + row * hopper::kRowBytes + (chunk ^ row % 8) * kChunk;
    *reinterpret_cast<uint4*>(place) = *reinterpret_cast<const uint4*>(from + i * kChunk);
  }
}

// a: tiles x 128 rows x 128 k; b: tiles x 128 columns x 128 k; c: tiles x 128 rows x 128 columns.
__global__ void __launch_bounds__(kThreads)
    int8_wgmma(int iters, const std::int8_t* __restrict__ a, const std::int8_t* __restrict__ b, int* __restrict__ c) {
  if constexpr (hopper::kIsHere) {
    ROOFLENS_SHARED(memory);
    const auto tile = static_cast<long long>(blockIdx.x);
    const int thread = static_cast<int>(threadIdx.x);
    const int group = thread / hopper::kGroup;
    load_rows(memory, a + tile * kOperand);
    load_rows(memory + kOperand, b + tile * kOperand);
    hopper::stores_to_tensor_cores();
    __syncthreads();
    const unsigned char* a_tile = memory + group * kGroupRows * hopper::kRowBytes;
    const unsigned char* b_tile = memory + kOperand;
    int sums[kGroupRows * kTile / hopper::kGroup] = {};
#pragma unroll 1
    for (int t = 0; t < iters; ++t) {
      hopper::multiply_begin();
#pragma unroll
      for (int k = 0; k < kTile; k += kK) {
        hopper::multiply_64x128x32(sums, hopper::descriptor(a_tile + k, 0, hopper::kAtomBytes),
                                   hopper::descriptor(b_tile + k, 0, hopper::kAtomBytes));
      }
      hopper::multiply_end();
      hopper::multiplied_but<1>();
    }
    hopper::multiplied_but<0>();
    const int row = group * kGroupRows + thread % hopper::kGroup / 32 * 16 + thread % 32 / 4;
    const int column = thread % 4 * 2;
    int* to = c + tile * kOperand;
#pragma unroll
    for (int i = 0; i < kGroupRows * kTile / hopper::kGroup; i += 2) {
      int* pair = to + (row + i / 2 % 2 * 8) * kTile + column + i / 4 * 8;
      *reinterpret_cast<int2*>(pair) = make_int2(sums[i], sums[i + 1]);
    }
  }
}

// Whole numbers: the reference is exact, and so must the result be.
rooflens::Check compare(const std::vector<int>& result, long long iters, RandomInt8 a, RandomInt8 b) {
  rooflens::Check check{0.0};
  const rooflens::Sample sample(static_cast<long long>(result.size()), kTile);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    const long long tile = i / kOperand;
    const long long row = tile * kOperand + i % kOperand / kTile * kTile;
    const long long column = tile * kOperand + i % kTile * kTile;
    long long sum = 0;
    for (long long k = 0; k < kTile; ++k) sum += a(row + k) * b(column + k);
    check.compare(result[static_cast<std::size_t>(i)], static_cast<double>(iters * sum), 1.0);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long tiles = arguments.take("tiles", 4096, 1, 1LL << 17);
  const long long iters = arguments.take("iters", kMaxIters, 1, kMaxIters);
  arguments.finish();
  rooflens::require_gpu();
  hopper::require_hopper();

  const RandomInt8 a_source{1};
  const RandomInt8 b_source{2};
  const rooflens::DeviceArray<std::int8_t> a(tiles * kOperand);
  const rooflens::DeviceArray<std::int8_t> b(tiles * kOperand);
  const rooflens::DeviceArray<int> c(tiles * kOperand);
  a.fill(a_source);
  b.fill(b_source);
  const unsigned blocks = static_cast<unsigned>(tiles);
  const int times = static_cast<int>(iters);
  const auto launch = [&] { int8_wgmma<<<blocks, kThreads, 2 * kOperand>>>(times, a.data(), b.data(), c.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(c.download(), iters, a_source, b_source);
  return rooflens::answer("int8_wgmma", arguments, timing, check);
}
