// 11 wgmma: Hopper's own path. TMA copies whole tiles into shared memory, and tensor cores read both operands there.
//
// Each does one thing. One lane of a producer warp asks TMA for tiles; two groups of four warps multiply 64x256x16 at
// once and never wait for one another. Two barriers a stage are all they share: `arrived` counts its bytes, `free` the
// warps that are done with it. Four stages of 48 KiB are under way, and the next tile's already while C is written.
// 128x256 elements of C in a block read 2*128*256 / ((128+256)*2) = 85 FLOP/B from far. The grid is persistent: a block
// for each SM takes tile after tile, in bands of 16 rows, so that blocks that run together read the same A and B from L2.
// Tiles stand in rows of 128 bytes, of which TMA swizzles eight: A in rows of K, B in rows of N, four boxes of 64 columns.
// C is written two floats at a time: four lanes fill a sector of 32 bytes, 64 stores a thread.
// Wall: the tensor pipe, at the dense peak of compute capability 9.0. No other GPU has this instruction.
#pragma once

#include <cuda_fp16.h>

#include "../device.cuh"
#include "../hopper.cuh"

namespace wgmma {

constexpr int kRows = 128;                                // of C in a block, 64 for each of two groups of four warps
constexpr int kColumns = 256;                             // of C in a block
constexpr int kDepth = 64;                                // k in a step: 128 bytes
constexpr int kK = 16;                                    // k in one multiplication
constexpr int kGroups = 2;
constexpr int kConsumers = kGroups * hopper::kGroup;
constexpr int kThreads = kConsumers + 32;                 // and the producer warp
constexpr int kGroupRows = kRows / kGroups;
constexpr int kStages = 4;
constexpr int kBox = 64;                                  // columns in a row of 128 bytes
constexpr int kABytes = kRows * hopper::kRowBytes;
constexpr int kBoxBytes = kDepth * hopper::kRowBytes;     // of B
constexpr int kStageBytes = kABytes + kColumns / kBox * kBoxBytes;
constexpr int kSharedBytes = kStages * kStageBytes;
constexpr int kBand = 16;                                 // rows of tiles that are done column by column

struct Tile {
  int row;
  int column;
};

__host__ __device__ constexpr Tile tile_of(int index, int rows, int columns) {
  const int band = index / (kBand * columns);
  const int within = index % (kBand * columns);
  const int height = rows - band * kBand < kBand ? rows - band * kBand : kBand;
  return {band * kBand + within % height, within / height};
}

constexpr bool visits_every_tile(int rows, int columns) {
  bool visited[4 * kBand * kBand] = {};
  for (int index = 0; index < rows * columns; ++index) {
    const Tile tile = tile_of(index, rows, columns);
    bool& is_known = visited[tile.row * columns + tile.column];
    if (tile.row >= rows || tile.column >= columns || is_known) return false;
    is_known = true;
  }
  return true;
}
static_assert(visits_every_tile(2, 1) && visits_every_tile(32, 16) && visits_every_tile(2 * kBand + 2, kBand + 1));

// A stage and a parity that go round: what the producer and the consumers each count for themselves.
struct Turn {
  int stage = 0;
  int parity = 0;

  __device__ void next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// n is a multiple of 256.
__global__ void __launch_bounds__(kThreads)
    gemm_11_wgmma(int n, const __grid_constant__ hopper::TensorMap a, const __grid_constant__ hopper::TensorMap b,
                  float* __restrict__ c) {
  if constexpr (hopper::kIsHere) {
    ROOFLENS_SHARED(memory);
    alignas(8) __shared__ std::uint64_t arrived[kStages];
    alignas(8) __shared__ std::uint64_t free[kStages];
    const int thread = static_cast<int>(threadIdx.x);
    const int rows = n / kRows;
    const int columns = n / kColumns;
    const int steps = n / kDepth;
    if (thread == 0) {
      for (int stage = 0; stage < kStages; ++stage) {
        hopper::barrier_start(&arrived[stage], 1);
        hopper::barrier_start(&free[stage], kConsumers / 32);
      }
      hopper::barriers_started();
    }
    __syncthreads();
    Turn turn;
    if (thread >= kConsumers) {
      if (thread != kConsumers) return;
      for (int index = static_cast<int>(blockIdx.x); index < rows * columns; index += static_cast<int>(gridDim.x)) {
        const Tile tile = tile_of(index, rows, columns);
        for (int step = 0; step < steps; ++step, turn.next()) {
          unsigned char* stage = memory + turn.stage * kStageBytes;
          std::uint64_t* barrier = &arrived[turn.stage];
          hopper::barrier_wait(&free[turn.stage], turn.parity ^ 1);
          hopper::barrier_expect(barrier, kStageBytes);
          hopper::load_box(stage, a, step * kDepth, tile.row * kRows, barrier);
          for (int box = 0; box < kColumns / kBox; ++box) {
            unsigned char* to = stage + kABytes + box * kBoxBytes;
            hopper::load_box(to, b, tile.column * kColumns + box * kBox, step * kDepth, barrier);
          }
        }
      }
      return;
    }
    const int group = thread / hopper::kGroup;
    const int lane = thread % 32;
    for (int index = static_cast<int>(blockIdx.x); index < rows * columns; index += static_cast<int>(gridDim.x)) {
      float sums[kGroupRows * kColumns / hopper::kGroup] = {};
      int last = 0;
      for (int step = 0; step < steps; ++step, turn.next()) {
        hopper::barrier_wait(&arrived[turn.stage], turn.parity);
        const unsigned char* b_tile = memory + turn.stage * kStageBytes + kABytes;
        const unsigned char* a_tile = b_tile - kABytes + group * kGroupRows * hopper::kRowBytes;
        hopper::multiply_begin();
#pragma unroll
        for (int k = 0; k < kDepth / kK; ++k) {
          const unsigned char* a_from = a_tile + k * kK * static_cast<int>(sizeof(__half));
          const unsigned char* b_from = b_tile + k * kK * hopper::kRowBytes;
          hopper::multiply_64x256x16(sums, hopper::descriptor(a_from, 0, hopper::kAtomBytes),
                                     hopper::descriptor(b_from, kBoxBytes, hopper::kAtomBytes));
        }
        hopper::multiply_end();
        hopper::multiplied_but<1>();  // those of the step before are done, and their stage is free
        if (step > 0 && lane == 0) hopper::barrier_arrive(&free[last]);
        last = turn.stage;
      }
      hopper::multiplied_but<0>();
      if (lane == 0) hopper::barrier_arrive(&free[last]);
      const Tile tile = tile_of(index, rows, columns);
      const int row = tile.row * kRows + group * kGroupRows + thread % hopper::kGroup / 32 * 16 + lane / 4;
      const int column = tile.column * kColumns + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < kGroupRows * kColumns / hopper::kGroup; i += 2) {
        float* to = &c[(row + i / 2 % 2 * 8) * n + column + i / 4 * 8];
        *reinterpret_cast<float2*>(to) = make_float2(sums[i], sums[i + 1]);
      }
    }
  }
}

inline void launch(int n, const __half* a, const __half* b, float* c) {
  rooflens::require(n % kColumns == 0, "`--n` of rung 11 must be a multiple of 256, its largest tile");
  hopper::require_hopper();
  rooflens::allow_shared(gemm_11_wgmma, kSharedBytes);
  const hopper::TensorMap a_map = hopper::tensor_map(a, n, kRows);
  const hopper::TensorMap b_map = hopper::tensor_map(b, n, kDepth);
  const int tiles = n / kRows * (n / kColumns);
  const int blocks = std::min(tiles, rooflens::device_attribute(cudaDevAttrMultiProcessorCount));
  gemm_11_wgmma<<<static_cast<unsigned>(blocks), kThreads, kSharedBytes>>>(n, a_map, b_map, c);
}

}  // namespace wgmma
