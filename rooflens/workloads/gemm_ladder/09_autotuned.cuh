// 09 autotuned: rung 08 with tiles of several shapes; the fastest one on this GPU, at this size, is what is measured.
//
// A larger tile reads each operand less often: 128x256 does 2*128*256*32 FLOP for (128+256)*32*2 bytes, 85 FLOP/B from
// far, where 128x128 does 64. But it leaves fewer blocks, and fewer of them fit on an SM: which wins, only a clock tells.
// The first launch tries all shapes that divide n, which is in the warm-up, before anything is marked or timed.
// Wall: the tensor pipe, as far as this path (mma) reaches.
#pragma once

#include <cuda_fp16.h>
#include <mma.h>

#include <limits>
#include <string>

#include "../common.cuh"

namespace autotuned {

constexpr int kEdge = 16;    // of one matrix operation
constexpr int kVector = 8;   // halves in 16 bytes
constexpr int kTries = 2;    // launches of a shape that are timed

using nvcuda::wmma::accumulator;
using nvcuda::wmma::fragment;
using nvcuda::wmma::matrix_a;
using nvcuda::wmma::matrix_b;
using nvcuda::wmma::row_major;

// Rows and columns of C in a block, k in a step, rows and columns of C in a warp.
template <int rows, int columns, int depth, int warp_rows, int warp_columns>
struct Tile {
  static constexpr int kRows = rows;
  static constexpr int kColumns = columns;
  static constexpr int kDepth = depth;
  static constexpr int kWarpRows = warp_rows;
  static constexpr int kWarpColumns = warp_columns;
  static constexpr int kWarpsAcross = columns / warp_columns;
  static constexpr int kThreads = 32 * kWarpsAcross * (rows / warp_rows);
  static constexpr int kAStride = depth + kVector;    // rows are padded: the 8 rows of a matrix read hit different banks
  static constexpr int kBStride = columns + kVector;
  static constexpr int kALoads = rows * depth / kVector / kThreads;     // vectors of A that a thread loads
  static constexpr int kBLoads = depth * columns / kVector / kThreads;  // and of B
  static_assert(kALoads * kVector * kThreads == rows * depth, "every thread loads as many vectors of A");
  static_assert(kBLoads * kVector * kThreads == depth * columns, "every thread loads as many vectors of B");
};

__device__ inline void load_vector(__half* to, const __half* from) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
}

// n is a multiple of the tile; a and b are aligned to 16 bytes, c to 32.
template <typename Shape>
__global__ void __launch_bounds__(Shape::kThreads)
    gemm_09_autotuned(int n, const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  constexpr int kAcross = Shape::kWarpRows / kEdge;
  constexpr int kAlong = Shape::kWarpColumns / kEdge;
  alignas(32) __shared__ __half a_tile[Shape::kRows * Shape::kAStride];
  alignas(32) __shared__ __half b_tile[Shape::kDepth * Shape::kBStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int first_row = static_cast<int>(blockIdx.y) * Shape::kRows;
  const int first_column = static_cast<int>(blockIdx.x) * Shape::kColumns;
  const int row = warp / Shape::kWarpsAcross * Shape::kWarpRows;
  const int column = warp % Shape::kWarpsAcross * Shape::kWarpColumns;
  fragment<accumulator, kEdge, kEdge, kEdge, float> sums[kAcross][kAlong];
#pragma unroll
  for (int i = 0; i < kAcross; ++i) {
#pragma unroll
    for (int j = 0; j < kAlong; ++j) nvcuda::wmma::fill_fragment(sums[i][j], 0.0f);
  }
  for (int start = 0; start < n; start += Shape::kDepth) {
#pragma unroll
    for (int load = 0; load < Shape::kALoads; ++load) {
      const int i = (thread + load * Shape::kThreads) * kVector;
      const int a_row = i / Shape::kDepth;
      const int a_k = i % Shape::kDepth;
      load_vector(&a_tile[a_row * Shape::kAStride + a_k], &a[(first_row + a_row) * n + start + a_k]);
    }
#pragma unroll
    for (int load = 0; load < Shape::kBLoads; ++load) {
      const int i = (thread + load * Shape::kThreads) * kVector;
      const int b_k = i / Shape::kColumns;
      const int b_column = i % Shape::kColumns;
      load_vector(&b_tile[b_k * Shape::kBStride + b_column], &b[(start + b_k) * n + first_column + b_column]);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < Shape::kDepth; k += kEdge) {
      fragment<matrix_a, kEdge, kEdge, kEdge, __half, row_major> a_held[kAcross];
#pragma unroll
      for (int i = 0; i < kAcross; ++i) {
        const __half* from = &a_tile[(row + i * kEdge) * Shape::kAStride + k];
        nvcuda::wmma::load_matrix_sync(a_held[i], from, Shape::kAStride);
      }
#pragma unroll
      for (int j = 0; j < kAlong; ++j) {
        fragment<matrix_b, kEdge, kEdge, kEdge, __half, row_major> b_held;
        nvcuda::wmma::load_matrix_sync(b_held, &b_tile[k * Shape::kBStride + column + j * kEdge], Shape::kBStride);
#pragma unroll
        for (int i = 0; i < kAcross; ++i) nvcuda::wmma::mma_sync(sums[i][j], a_held[i], b_held, sums[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kAcross; ++i) {
#pragma unroll
    for (int j = 0; j < kAlong; ++j) {
      float* to = &c[(first_row + row + i * kEdge) * n + first_column + column + j * kEdge];
      nvcuda::wmma::store_matrix_sync(to, sums[i][j], static_cast<unsigned>(n), nvcuda::wmma::mem_row_major);
    }
  }
}

template <typename Shape>
void launch(int n, const __half* a, const __half* b, float* c) {
  const dim3 grid(static_cast<unsigned>(n / Shape::kColumns), static_cast<unsigned>(n / Shape::kRows));
  gemm_09_autotuned<Shape><<<grid, Shape::kThreads>>>(n, a, b, c);
}

struct Candidate {
  int rows;
  int columns;
  int depth;
  void (*launch)(int, const __half*, const __half*, float*);

  std::string name() const {
    return std::to_string(rows) + "x" + std::to_string(columns) + "x" + std::to_string(depth);
  }
};

template <typename Shape>
constexpr Candidate candidate() {
  return {Shape::kRows, Shape::kColumns, Shape::kDepth, launch<Shape>};
}

// The first one is that of rung 08, and divides every n that the ladder takes.
constexpr Candidate kCandidates[] = {
    candidate<Tile<128, 128, 32, 64, 64>>(), candidate<Tile<128, 128, 64, 64, 64>>(),
    candidate<Tile<128, 256, 32, 64, 64>>(), candidate<Tile<256, 128, 32, 64, 64>>(),
    candidate<Tile<64, 128, 64, 32, 64>>(),
};

// Launches like a rung; its first launch searches.
class Rung {
 public:
  void operator()(int n, const __half* a, const __half* b, float* c) {
    if (chosen_ == nullptr) chosen_ = &fastest(n, a, b, c);
    chosen_->launch(n, a, b, c);
  }

  std::string tile() const { return chosen_ == nullptr ? "" : chosen_->name(); }

 private:
  static const Candidate& fastest(int n, const __half* a, const __half* b, float* c) {
    const Candidate* best = nullptr;
    double least_ns = std::numeric_limits<double>::infinity();
    for (const Candidate& one : kCandidates) {
      if (n % one.rows != 0 || n % one.columns != 0) continue;
      const auto launch = [&] { one.launch(n, a, b, c); };
      launch();  // loads the kernel
      const double time_ns = rooflens::kernel_time_ns(kTries, launch);
      if (best == nullptr || time_ns < least_ns) {
        best = &one;
        least_ns = time_ns;
      }
    }
    return *best;
  }

  const Candidate* chosen_ = nullptr;
};

}  // namespace autotuned
