// Random operands: a GPU draws less power on zeros and constants, and so clocks higher than it ever does in earnest.
#pragma once

#include "../common.cuh"

#include <cuda_fp16.h>

namespace calibrate {

__device__ inline long long thread_index() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ inline std::uint32_t random_word(std::uint32_t seed, long long index) {
  return static_cast<std::uint32_t>(rooflens::random_bits(seed, index) >> 32);
}

// Uniform in [-1, 1), over 31 bits.
__device__ inline double random_double(std::uint32_t seed, long long index) {
  return static_cast<std::int32_t>(random_word(seed, index)) * 0x1p-31;
}

// Uses a vector, so that its load stays.
__device__ inline void fold(uint4& sum, uint4 held) {
  sum = make_uint4(sum.x ^ held.x, sum.y ^ held.y, sum.z ^ held.z, sum.w ^ held.w);
}

// What buffers are filled with.
struct RandomWord {
  std::uint32_t seed;
  __host__ __device__ std::uint32_t operator()(long long index) const {
    return static_cast<std::uint32_t>(rooflens::random_bits(seed, index) >> 32);
  }
};

// One register of tensor operands by type: finite, and small enough that no accumulator overflows in a measurement.
struct Bf16 {
  using Register = std::uint32_t;
  static __device__ Register random(std::uint32_t seed, long long index) {
    const float low = static_cast<float>(random_double(seed, 2 * index));
    const float high = static_cast<float>(random_double(seed, 2 * index + 1));
    return __float_as_uint(low) >> 16 | (__float_as_uint(high) & 0xffff0000u);
  }
};

struct Fp16 {
  using Register = std::uint32_t;
  static __device__ Register random(std::uint32_t seed, long long index) {
    const __half low = __float2half(static_cast<float>(random_double(seed, 2 * index) / 16));
    const __half high = __float2half(static_cast<float>(random_double(seed, 2 * index + 1) / 16));
    return static_cast<Register>(__half_as_ushort(high)) << 16 | __half_as_ushort(low);
  }
};

struct Tf32 {
  using Register = std::uint32_t;
  static __device__ Register random(std::uint32_t seed, long long index) {
    return __float_as_uint(static_cast<float>(random_double(seed, index))) & 0xffffe000u;
  }
};

// e4m3 without its top exponent bit: at most 1.875, never NaN.
struct Fp8 {
  using Register = std::uint32_t;
  static __device__ Register random(std::uint32_t seed, long long index) {
    return random_word(seed, index) & 0xbfbfbfbfu;
  }
};

struct Int8 {
  using Register = std::uint32_t;
  static __device__ Register random(std::uint32_t seed, long long index) { return random_word(seed, index); }
};

struct Fp64 {
  using Register = double;
  static __device__ Register random(std::uint32_t seed, long long index) { return random_double(seed, index) / 3; }
};

}  // namespace calibrate
