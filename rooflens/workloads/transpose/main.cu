// transpose: B = A^T through a tile in shared memory, with and without bank conflicts.
//
// Shared memory has 32 banks of 4 bytes; a warp gets its 128 bytes in one wavefront only if its lanes hit 32 banks.
// Reading a column of a 32-wide tile hits ONE bank 32 times: 32 wavefronts. With a 33rd, unused column the lanes stand
// in 32 different banks again: 1 wavefront.
//
// An element costs 8 bytes of DRAM: read once (4), written once (4). No FLOP at all.
// `passes` sends a tile through shared memory that often (an odd number is a transpose): at 5 passes a warp needs
// 5 (1 + 32) = 165 wavefronts unpadded, 5 (1 + 1) = 10 padded, for the same 256 bytes of DRAM.
#include "../common.cuh"

namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  // rows of threads: each thread moves kTile / kRows = 4 elements
constexpr int kEach = kTile / kRows;

template <int Padding>
__global__ void transpose(int n, int passes, const float* __restrict__ in, float* __restrict__ out) {
  __shared__ float tile[kTile][kTile + Padding];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  float held[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int row = blockIdx.y * kTile + ty + e * kRows;
    const int column = blockIdx.x * kTile + tx;
    held[e] = row < n && column < n ? in[static_cast<long long>(row) * n + column] : 0.0f;
  }
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kEach; ++e) tile[ty + e * kRows][tx] = held[e];
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kEach; ++e) held[e] = tile[tx][ty + e * kRows];
  }
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int row = blockIdx.x * kTile + ty + e * kRows;
    const int column = blockIdx.y * kTile + tx;
    if (row < n && column < n) out[static_cast<long long>(row) * n + column] = held[e];
  }
}

rooflens::Check compare(const std::vector<float>& result, long long n, rooflens::RandomFloat in) {
  rooflens::Check check{0.0};
  const rooflens::Sample sample(n * n, 1);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    check.compare(result[static_cast<std::size_t>(i)], in(i % n * n + i / n), 1.0);
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 8192, 1, 65536);
  const long long passes = arguments.take("passes", 5, 1, 9999);
  const bool padded = arguments.take("padded", 0, 0, 1) != 0;
  arguments.finish();
  rooflens::require(passes % 2 == 1, "`--passes` must be odd: an even number gives the matrix back");
  rooflens::require_gpu();

  const rooflens::RandomFloat source{1};
  const rooflens::DeviceArray<float> in(n * n);
  const rooflens::DeviceArray<float> out(n * n);
  in.fill(source);
  const unsigned tiles = rooflens::blocks_for(n, kTile);
  const dim3 grid(tiles, tiles);
  const dim3 block(kTile, kRows);
  const int edge = static_cast<int>(n);
  const int times = static_cast<int>(passes);
  const auto launch = [&] {
    if (padded) {
      transpose<1><<<grid, block>>>(edge, times, in.data(), out.data());
    } else {
      transpose<0><<<grid, block>>>(edge, times, in.data(), out.data());
    }
  };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(out.download(), n, source);
  return rooflens::answer("transpose", arguments, timing, check);
}
