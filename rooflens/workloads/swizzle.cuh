// Tiles in shared memory without padding: the chunks of 16 bytes of a row change places by the number of the row, so the
// same chunks of 8 rows lie in different banks.
#pragma once

namespace swizzle {

// Where the value at a row and a column stands in a tile with rows of so many values, a multiple of 128 bytes.
template <typename Value, int width>
__device__ int place(int row, int column) {
  constexpr int kChunk = 16 / static_cast<int>(sizeof(Value));
  return row * width + (column / kChunk ^ row % 8) * kChunk + column % kChunk;
}

}  // namespace swizzle
