// Stands in for `mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32`: lanes exchange their registers as PTX lays them out.
#pragma once

#include <cuda_runtime.h>

namespace emulator {

struct Registers {
  std::uint32_t a[4], b[2];
};
inline Registers registers[1024];

inline int byte_of(std::uint32_t word, int place) { return static_cast<std::int8_t>(word >> (8 * place)); }

// PTX ISA, "Matrix fragments for mma.m16n8k32": group = lane / 4 is the row of A and the column of B.
inline int a_at(std::size_t warp, int row, int k) {
  const Registers& held = registers[warp + static_cast<std::size_t>(row % 8 * 4 + k % 16 / 4)];
  return byte_of(held.a[row / 8 + k / 16 * 2], k % 4);
}
inline int b_at(std::size_t warp, int k, int column) {
  const Registers& held = registers[warp + static_cast<std::size_t>(column * 4 + k % 16 / 4)];
  return byte_of(held.b[k / 16], k % 4);
}

}  // namespace emulator

inline void mma_16x8x32(int (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  std::memcpy(emulator::registers[emulator::current].a, a, sizeof a);
  std::memcpy(emulator::registers[emulator::current].b, b, sizeof b);
  emulator::wait(emulator::State::at_warp_barrier);
  const std::size_t lane = emulator::current % 32;
  const std::size_t warp = emulator::current - lane;
  for (int e = 0; e < 4; ++e) {
    const int row = static_cast<int>(lane) / 4 + e / 2 * 8;
    const int column = static_cast<int>(lane) % 4 * 2 + e % 2;
    for (int k = 0; k < 32; ++k) c[e] += emulator::a_at(warp, row, k) * emulator::b_at(warp, k, column);
  }
  emulator::wait(emulator::State::at_warp_barrier);
}
