// One warp's C (16x8, int32) += A (16x32, int8) B (32x8, int8): 2*16*8*32 = 8192 operations, one IMMA.16832 from
// compute capability 8.0 on.
//
// PTX spreads the operands over the 32 lanes, four int8 to a register. A lane, with
// row = lane / 4 and part = lane % 4, has
//   a[0] A[row    ][4 part ..]      a[2] A[row    ][16 + 4 part ..]     b[0] B[4 part ..     ][row]
//   a[1] A[row + 8][4 part ..]      a[3] A[row + 8][16 + 4 part ..]     b[1] B[16 + 4 part ..][row]
//   c[0], c[1] C[row][2 part], C[row][2 part + 1]                       c[2], c[3] the same of row + 8
#pragma once

#include <cstdint>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

__device__ inline void mma_16x8x32(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

__device__ inline void mma_8x8x16(int& c0, int& c1, std::uint32_t a, std::uint32_t b) {
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+r"(c0), "+r"(c1)
               : "r"(a), "r"(b));
}

// Turing's largest int8 instruction is m8n8k16: two halves of the rows times two halves of K.
__device__ inline void mma_16x8x32(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  mma_8x8x16(c[0], c[1], a[0], b[0]);
  mma_8x8x16(c[2], c[3], a[1], b[0]);
  mma_8x8x16(c[0], c[1], a[2], b[1]);
  mma_8x8x16(c[2], c[3], a[3], b[1]);
}

#endif
