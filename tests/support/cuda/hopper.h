// Stands in for Hopper's barriers, TMA and wgmma. A box is swizzled as TMA does it, and a multiplication finds its
// operands by their descriptors, in the canonical layouts of the PTX ISA for a swizzle of 128 bytes.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define HOPPER_SHARED(NAME) alignas(1024) static unsigned char NAME[227 * 1024]
#define __grid_constant__

namespace hopper {

constexpr bool kIsHere = true;

struct TensorMap {
  const __half* matrix;
  int n, rows;
};

inline TensorMap tensor_map(const __half* matrix, int n, int rows) { return {matrix, n, rows}; }
inline void require_hopper() {}
template <typename Kernel>
void allow_shared(Kernel*, int bytes) {
  if (bytes > 227 * 1024) emulator::stop("more shared memory than an SM has");
}

// A barrier holds the bytes that are to come, and from bit 32 on how many phases have ended.
constexpr std::uint64_t kPhase = 1ull << 32;

inline void barrier_start(std::uint64_t* barrier) { *barrier = 0; }
inline void barriers_started() {}
inline void barrier_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  if (*barrier % kPhase != 0) emulator::stop("a stage is fetched before it has arrived");
  *barrier += bytes;
}
inline void barrier_wait(std::uint64_t* barrier, int parity) {
  if (*barrier % kPhase != 0 || static_cast<int>(*barrier / kPhase % 2) == parity) emulator::stop("nothing is to arrive");
}

// Chunks of 16 bytes change places within a row of 128 bytes, by the number of the row among eight.
inline std::uintptr_t swizzled(std::uintptr_t address) { return address ^ (address >> 7 & 7) << 4; }

inline void load_box(void* to, const TensorMap& map, int column, int row, std::uint64_t* barrier) {
  const auto start = reinterpret_cast<std::uintptr_t>(to);
  if (start % 1024 != 0) emulator::stop("a swizzled box is not aligned to 1024 bytes");
  for (int i = 0; i < map.rows; ++i) {
    for (int j = 0; j < 64; ++j) {
      const std::uintptr_t place = swizzled(start + static_cast<std::uintptr_t>(i * 128 + j * 2));
      *reinterpret_cast<__half*>(place) = map.matrix[static_cast<long long>(row + i) * map.n + column + j];
    }
  }
  const auto bytes = static_cast<std::uint64_t>(map.rows * 128);
  *barrier -= bytes;
  if (*barrier % kPhase == 0) *barrier += kPhase;
}

// Addresses of a process have more than 18 bits: a descriptor counts from the start of the last one's window.
struct Descriptor {
  std::uintptr_t start;
  std::uint64_t leading, stride;
};
inline Descriptor descriptor(const void* tile, std::uint64_t leading, std::uint64_t stride) {
  return {reinterpret_cast<std::uintptr_t>(tile), leading, stride};
}

inline float half_at(std::uintptr_t address) { return __half2float(*reinterpret_cast<const __half*>(swizzled(address))); }

// Rows follow K: ((8, m), (T, 2k)) : ((8T, SBO), (1, T)).
inline float a_at(const Descriptor& a, unsigned row, unsigned k) {
  return half_at(a.start + row % 8 * 128 + row / 8 * a.stride + k * 2);
}
// Rows follow N: ((T, 8, m), (8, k)) : ((1, T, LBO), (8T, SBO)).
inline float b_at(const Descriptor& b, unsigned k, unsigned column) {
  return half_at(b.start + column % 64 * 2 + column / 64 * b.leading + k % 8 * 128 + k / 8 * b.stride);
}

inline void multiply_begin() {}
inline void multiply_end() {}
template <int groups>
void multiplied_but() {}

inline void multiply_64x128x16(float (&c)[64], const Descriptor& a, const Descriptor& b) {
  const unsigned warp = threadIdx.x % 128 / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned row = 16 * warp + i / 2 % 2 * 8 + lane / 4;
    const unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) c[i] += a_at(a, row, k) * b_at(b, k, column);
  }
}

}  // namespace hopper
