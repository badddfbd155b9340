// Stands in for ldmatrix and mma.m16n8k16: lanes exchange addresses and registers as PTX lays them out.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace emulator {

// What a lane shows the others of its warp.
struct Held {
  const __half* row;
  float a[8], b[4];
};

inline float half_of(std::uint32_t word, unsigned place) {
  __half half;
  const auto bits = static_cast<std::uint16_t>(word >> (16 * place));
  std::memcpy(&half, &bits, sizeof half);
  return __half2float(half);
}

inline std::uint32_t bits_of(const __half& half, unsigned place) {
  std::uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return static_cast<std::uint32_t>(bits) << (16 * place);
}

// PTX ISA, "ldmatrix": the lanes 8 m to 8 m + 7 name the rows of the matrix m.
template <bool transposed>
void load_matrices(std::uint32_t (&to)[4], const __half* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) stop("a row of ldmatrix is not aligned to 16 bytes");
  show<Held>().row = row;
  const Warp<Held> warp;
  const std::size_t lane = current % 32;
  for (unsigned m = 0; m < 4; ++m) {
    to[m] = 0;
    for (unsigned e = 0; e < 2; ++e) {
      const std::size_t along = lane % 4 * 2 + e;
      const std::size_t across = lane / 4;
      to[m] |= transposed ? bits_of(warp[8 * m + along].row[across], e) : bits_of(warp[8 * m + across].row[along], e);
    }
  }
}

}  // namespace emulator

namespace warp_mma {

inline void load_matrices(std::uint32_t (&to)[4], const __half* row) { emulator::load_matrices<false>(to, row); }
inline void load_matrices_transposed(std::uint32_t (&to)[4], const __half* row) {
  emulator::load_matrices<true>(to, row);
}

// PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type".
inline void multiply_16x8x16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  emulator::Held& mine = emulator::show<emulator::Held>();
  for (unsigned i = 0; i < 8; ++i) mine.a[i] = emulator::half_of(a[i / 2], i % 2);
  for (unsigned i = 0; i < 4; ++i) mine.b[i] = emulator::half_of(i < 2 ? b0 : b1, i % 2);
  const emulator::Warp<emulator::Held> warp;
  const std::size_t lane = emulator::current % 32;
  for (unsigned e = 0; e < 4; ++e) {
    const std::size_t row = lane / 4;
    const std::size_t column = lane % 4 * 2 + e % 2;
    for (unsigned k = 0; k < 16; ++k) {
      const float of_a = warp[row * 4 + k % 8 / 2].a[(e / 2 + k / 8 * 2) * 2 + k % 2];
      c[e] += of_a * warp[column * 4 + k % 8 / 2].b[k / 8 * 2 + k % 2];
    }
  }
}

}  // namespace warp_mma
