// Tiles in shared memory without padding: the chunks of 16 bytes of a row change places by the number of the row, so
// the same chunks of 8 rows lie in different banks.
#pragma once

namespace swizzle {

// Where the value at a row and a column stands in a tile with rows of so many values, a multiple of 128 bytes.
// Unsigned, as then the compiler sees that rows which are 8 apart have their chunks in the same places.
template <typename Value, unsigned width>
__device__ unsigned place(unsigned row, unsigned column) {
  constexpr unsigned kChunk = 16 / sizeof(Value);
  return row * width + (column / kChunk ^ row % 8) * kChunk + column % kChunk;
}

}  // namespace swizzle
