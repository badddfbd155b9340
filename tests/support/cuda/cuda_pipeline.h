// Stands in for cp.async: a copy of a thread is made when that thread waits for its group, and no earlier.
#pragma once

#include <cuda_runtime.h>

#include <deque>

namespace emulator {

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};
inline std::deque<std::vector<Copy>> groups[1024];  // of each thread, the oldest first; the last one is open

}  // namespace emulator

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 || reinterpret_cast<std::uintptr_t>(from) % bytes != 0) {
    emulator::stop("an asynchronous copy is not aligned");
  }
  auto& groups = emulator::groups[emulator::current];
  if (groups.empty()) groups.emplace_back();
  groups.back().push_back({to, from, bytes});
}

inline void __pipeline_commit() { emulator::groups[emulator::current].emplace_back(); }

inline void __pipeline_wait_prior(std::size_t count) {
  auto& groups = emulator::groups[emulator::current];
  for (; groups.size() > count + 1; groups.pop_front()) {
    for (const emulator::Copy& copy : groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
  }
}
