// Stands in for CUDA's half-precision type: arithmetic in double, rounded once.
#pragma once

struct __half {
  _Float16 value;
  __half() = default;
  explicit __half(float from) : value(static_cast<_Float16>(from)) {}
};
struct alignas(4) __half2 {
  __half x, y;
};

inline float __half2float(__half half) { return static_cast<float>(half.value); }
inline __half2 __floats2half2_rn(float low, float high) { return {__half(low), __half(high)}; }
inline __half2 __float2half2_rn(float value) { return {__half(value), __half(value)}; }

namespace emulator {
inline __half multiply_add(__half a, __half b, __half c) {
  __half sum;
  sum.value = static_cast<_Float16>(static_cast<double>(a.value) * static_cast<double>(b.value) +
                                    static_cast<double>(c.value));
  return sum;
}
}  // namespace emulator

inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {emulator::multiply_add(a.x, b.x, c.x), emulator::multiply_add(a.y, b.y, c.y)};
}
