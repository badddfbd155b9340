// What a warp's products of matrices need of PTX: its matrices straight out of shared memory, and their product.
//
// Of the lane l, a register of an 8x8 matrix holds row l / 4, elements 2 (l % 4) and 2 (l % 4) + 1; transposed, these
// elements of column l / 4.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

namespace warp_mma {

// Four 8x8 matrices: the lanes 8 i to 8 i + 7 give the addresses of the rows of the matrix i, 16 bytes each.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// c (16x8, fp32) += a (16x16) b (16x8). Of a: rows 0 to 7 and 8 to 15 of the first 8 k, then of the others; of b: the
// first 8 k, transposed, then the others; c[0], c[1] stand in row l / 4, columns 2 (l % 4) and the next; c[2], c[3] 8
// rows below.
__device__ inline void multiply_16x8x16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                        std::uint32_t b1) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else  // Turing's largest is m16n8k8
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

}  // namespace warp_mma
