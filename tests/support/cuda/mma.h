// Stands in for CUDA's warp matrices: every lane holds the whole matrix, the first lane computes and stores.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
enum layout_t { mem_row_major };

template <typename Use, int M, int N, int K, typename Value, typename Layout = void>
struct fragment {
  float held[16][16];
};

// The alignment that CUDA asks for: 32 bytes, and rows a multiple of 16 bytes apart.
template <typename Value>
void require_aligned(const Value* data, unsigned stride) {
  if (reinterpret_cast<std::uintptr_t>(data) % 32 != 0) emulator::stop("a warp matrix is not aligned to 32 bytes");
  if (stride * sizeof(Value) % 16 != 0) emulator::stop("rows of a warp matrix are not 16 bytes apart");
}

template <typename Fragment>
void fill_fragment(Fragment& fragment, float value) {
  for (auto& row : fragment.held)
    for (float& element : row) element = value;
}

template <typename Fragment>
void load_matrix_sync(Fragment& fragment, const __half* from, unsigned stride) {
  require_aligned(from, stride);
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 16; ++j) fragment.held[i][j] = __half2float(from[i * stride + j]);
}

template <typename Sum, typename A, typename B>
void mma_sync(Sum& to, const A& a, const B& b, const Sum& from) {
  if (threadIdx.x % 32 != 0) return;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float sum = from.held[i][j];
      for (int k = 0; k < 16; ++k) sum += a.held[i][k] * b.held[k][j];
      to.held[i][j] = sum;
    }
}

template <typename Fragment>
void store_matrix_sync(float* to, const Fragment& fragment, unsigned stride, layout_t) {
  require_aligned(to, stride);
  if (threadIdx.x % 32 != 0) return;
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned j = 0; j < 16; ++j) to[i * stride + j] = fragment.held[i][j];
}

}  // namespace nvcuda::wmma
