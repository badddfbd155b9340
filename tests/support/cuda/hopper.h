// Stands in for Hopper's barriers, TMA and wgmma. A box is swizzled as TMA does it, and a multiplication finds its
// operands by their descriptors, in the canonical layouts of the PTX ISA for a swizzle of 128 bytes.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <deque>

namespace hopper {

constexpr bool kIsHere = true;
constexpr int kRowBytes = 128;
constexpr int kAtomBytes = 8 * kRowBytes;
constexpr int kGroup = 128;

struct TensorMap {
  const __half* matrix;
  int n, rows;
};

inline TensorMap tensor_map(const __half* matrix, int n, int rows) { return {matrix, n, rows}; }
inline void require_hopper() {}

// What stands in the 64 bits of a barrier.
struct Barrier {
  std::uint32_t bytes;  // still to come in this phase
  std::uint8_t arrivals, pending;
  std::uint16_t phases;  // that have ended

  void end_if_complete() {
    if (bytes != 0 || pending != 0) return;
    pending = arrivals;
    ++phases;
    ++emulator::news;
  }
};
static_assert(sizeof(Barrier) == sizeof(std::uint64_t));
inline Barrier& of(std::uint64_t* barrier) { return *reinterpret_cast<Barrier*>(barrier); }

inline void barrier_start(std::uint64_t* barrier, int arrivals) {
  const auto count = static_cast<std::uint8_t>(arrivals);
  of(barrier) = {0, count, count, 0};
}
inline void barriers_started() {}
inline void arrive(Barrier& barrier) {
  if (barrier.pending-- == 0) emulator::stop("more threads arrive at a barrier than it counts");
  barrier.end_if_complete();
}
// Those who wait for it may go on at once: what a thread gives away too early is overwritten under its hands.
inline void barrier_arrive(std::uint64_t* barrier) {
  arrive(of(barrier));
  emulator::wait(emulator::State::ready);
}
inline void barrier_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  if (of(barrier).bytes != 0) emulator::stop("a stage is fetched before it has arrived");
  of(barrier).bytes += bytes;
  arrive(of(barrier));
}
inline void barrier_wait(std::uint64_t* barrier, int parity) {
  emulator::wait_until([&] { return of(barrier).phases % 2 != parity; });
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
  const auto bytes = static_cast<std::uint32_t>(map.rows * 128);
  if (of(barrier).bytes < bytes) emulator::stop("more bytes arrive than a barrier expects");
  of(barrier).bytes -= bytes;
  of(barrier).end_if_complete();
}

// Addresses of a process have more than 18 bits: a descriptor counts from the start of the last one's window.
struct Descriptor {
  std::uintptr_t start;
  std::uint64_t leading, stride;
};
inline Descriptor descriptor(const void* tile, std::uint64_t leading, std::uint64_t stride) {
  return {reinterpret_cast<std::uintptr_t>(tile), leading, stride};
}

template <typename Value>
Value at(std::uintptr_t address) {
  return *reinterpret_cast<const Value*>(swizzled(address));
}

// Rows follow K: ((8, m), (T, 2k)) : ((8T, SBO), (1, T)).
template <typename Value>
Value along_k(const Descriptor& tile, unsigned row, unsigned k) {
  return at<Value>(tile.start + row % 8 * 128 + row / 8 * tile.stride + k * sizeof(Value));
}
// Rows follow N: ((T, 8, m), (8, k)) : ((1, T, LBO), (8T, SBO)).
inline __half across_k(const Descriptor& tile, unsigned k, unsigned column) {
  return at<__half>(tile.start + column % 64 * 2 + column / 64 * tile.leading + k % 8 * 128 + k / 8 * tile.stride);
}

inline void stores_to_tensor_cores() {}

// A multiplication is done when its threads wait for its group, and no earlier: so an operand that is overwritten, or a
// sum that is read, before that is a wrong result.
inline std::deque<std::vector<std::function<void()>>> groups[1024];  // of each thread, the oldest first; the last is open

inline void multiply_begin() {
  auto& mine = groups[emulator::current];
  if (mine.empty()) mine.emplace_back();
}
inline void multiply_end() { groups[emulator::current].emplace_back(); }
template <int count>
void multiplied_but() {
  auto& mine = groups[emulator::current];
  for (; mine.size() > count + 1; mine.pop_front()) {
    for (const auto& multiply : mine.front()) multiply();
  }
}

// Gives each sum of this thread its row and column.
template <typename Multiply>
void for_each_sum(unsigned count, Multiply multiply) {
  const unsigned warp = threadIdx.x % 128 / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = 0; i < count; ++i) {
    multiply(i, 16 * warp + i / 2 % 2 * 8 + lane / 4, i / 4 * 8 + lane % 4 * 2 + i % 2);
  }
}

inline void multiply_64x256x16(float (&c)[128], const Descriptor& a, const Descriptor& b) {
  groups[emulator::current].back().push_back([&c, a, b] {
    for_each_sum(128, [&](unsigned i, unsigned row, unsigned column) {
      for (unsigned k = 0; k < 16; ++k) {
        c[i] += __half2float(along_k<__half>(a, row, k)) * __half2float(across_k(b, k, column));
      }
    });
  });
}

inline void multiply_64x128x32(int (&c)[64], const Descriptor& a, const Descriptor& b) {
  groups[emulator::current].back().push_back([&c, a, b] {
    for_each_sum(64, [&](unsigned i, unsigned row, unsigned column) {
      for (unsigned k = 0; k < 32; ++k) c[i] += along_k<std::int8_t>(a, row, k) * along_k<std::int8_t>(b, column, k);
    });
  });
}

}  // namespace hopper
