// Stands in for NVTX: notes that a range was opened and what ran inside.
#pragma once

#include <cuda_runtime.h>

using nvtxRangeId_t = long long;

inline nvtxRangeId_t nvtxRangeStartA(const char* name) {
  emulator::range_name = name;
  emulator::in_range = true;
  return ++emulator::ranges;
}
inline void nvtxRangeEnd(nvtxRangeId_t) { emulator::in_range = false; }
