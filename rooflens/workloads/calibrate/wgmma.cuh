// Hopper's tensor cores by wgmma: four warps together, both operands in shared memory. In code for 9.0a only.
//
// One tile of A (64 rows) and one of B (128 columns), 32 bytes deep, serve every type: 16 bf16 or fp16, 8 tf32, 32 fp8
// or int8. Which element a byte belongs to does not change the rate, so random words stand in any order.
#pragma once

#include "arch.cuh"
#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr int kWgmmaThreads = 256;  // two warpgroups: one computes while the other waits
constexpr int kWgmmaGroup = 128;
constexpr int kWgmmaM = 64;
constexpr int kWgmmaN = 128;
constexpr int kWgmmaAccumulators = kWgmmaM * kWgmmaN / kWgmmaGroup;
constexpr int kWgmmaWordsDeep = 8;
constexpr int kWgmmaAWords = kWgmmaM * kWgmmaWordsDeep;
constexpr int kWgmmaBWords = kWgmmaN * kWgmmaWordsDeep;
constexpr int kWgmmaTiles = 4;     // the instructions of a pass go through them, so that operands change
constexpr int kWgmmasInPass = 16;

// PTX ISA, "matrix descriptor format": start address, then the offsets along K and along M or N, in units of 16 bytes;
// no swizzle. A core matrix is 8 rows of 16 bytes; its neighbour along K follows it, the next 8 rows follow both.
__device__ inline std::uint64_t matrix_descriptor(const std::uint32_t* tile) {
  const std::uint64_t address = __cvta_generic_to_shared(tile);
  constexpr std::uint64_t kAlongK = 128 / 16;
  constexpr std::uint64_t kAlongRows = 256 / 16;
  return (address & 0x3ffff) / 16 | kAlongK << 16 | kAlongRows << 32;
}

#define CALIBRATE_C8(KIND, I)                                                                                   \
  "+" KIND(c[I]), "+" KIND(c[I + 1]), "+" KIND(c[I + 2]), "+" KIND(c[I + 3]), "+" KIND(c[I + 4]),               \
      "+" KIND(c[I + 5]), "+" KIND(c[I + 6]), "+" KIND(c[I + 7])

// "p" set: add to the accumulators.
#define CALIBRATE_WGMMA(TYPES, KIND, SCALES)                                                                    \
  asm volatile("{ .reg .pred p; setp.eq.u64 p, %64, %64; wgmma.mma_async.sync.aligned." TYPES                   \
               " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"                        \
               " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"               \
               " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"               \
               " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},"              \
               " %64, %65, p" SCALES "; }"                                                                      \
               : CALIBRATE_C8(KIND, 0), CALIBRATE_C8(KIND, 8), CALIBRATE_C8(KIND, 16), CALIBRATE_C8(KIND, 24),  \
                 CALIBRATE_C8(KIND, 32), CALIBRATE_C8(KIND, 40), CALIBRATE_C8(KIND, 48), CALIBRATE_C8(KIND, 56) \
               : "l"(a), "l"(b))

template <typename OperandType, typename AccumulatorType, int K>
struct Wgmma {
  using Operand = OperandType;
  using Accumulator = AccumulatorType;
  static constexpr double kOperations = 2.0 * kWgmmaM * kWgmmaN * K;
};

struct WgmmaBf16 : Wgmma<Bf16, float, 16> {
  static __device__ void run(std::uint64_t a, std::uint64_t b, Accumulator* c) {
    CALIBRATE_WGMMA("m64n128k16.f32.bf16.bf16", "f", ", 1, 1, 0, 0");
  }
};

struct WgmmaFp16 : Wgmma<Fp16, float, 16> {
  static __device__ void run(std::uint64_t a, std::uint64_t b, Accumulator* c) {
    CALIBRATE_WGMMA("m64n128k16.f32.f16.f16", "f", ", 1, 1, 0, 0");
  }
};

struct WgmmaTf32 : Wgmma<Tf32, float, 8> {
  static __device__ void run(std::uint64_t a, std::uint64_t b, Accumulator* c) {
    CALIBRATE_WGMMA("m64n128k8.f32.tf32.tf32", "f", ", 1, 1");
  }
};

struct WgmmaFp8 : Wgmma<Fp8, float, 32> {
  static __device__ void run(std::uint64_t a, std::uint64_t b, Accumulator* c) {
    CALIBRATE_WGMMA("m64n128k32.f32.e4m3.e4m3", "f", ", 1, 1");
  }
};

struct WgmmaInt8 : Wgmma<Int8, std::uint32_t, 32> {
  static __device__ void run(std::uint64_t a, std::uint64_t b, Accumulator* c) {
    CALIBRATE_WGMMA("m64n128k32.s32.s8.s8", "r", "");
  }
};

// One pass is kWgmmasInPass instructions a warpgroup.
template <typename Instruction>
__global__ void __launch_bounds__(kWgmmaThreads)
    wgmma_chains(int passes, typename Instruction::Accumulator* sink, Elapsed* elapsed) {
  if constexpr (kWgmma) {
    __shared__ alignas(128) std::uint32_t a[kWgmmaTiles * kWgmmaAWords];
    __shared__ alignas(128) std::uint32_t b[kWgmmaTiles * kWgmmaBWords];
    for (int i = threadIdx.x; i < kWgmmaTiles * kWgmmaAWords; i += kWgmmaThreads) {
      a[i] = Instruction::Operand::random(1, i);
    }
    for (int i = threadIdx.x; i < kWgmmaTiles * kWgmmaBWords; i += kWgmmaThreads) {
      b[i] = Instruction::Operand::random(2, i);
    }
    // Written by plain stores, read by the tensor cores: without the fence they may see what was there before.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    typename Instruction::Accumulator c[kWgmmaAccumulators] = {};
    const Elapsed start = clock_now();
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int i = 0; i < kWgmmasInPass; ++i) {
        const int tile = i % kWgmmaTiles;
        Instruction::run(matrix_descriptor(a + tile * kWgmmaAWords), matrix_descriptor(b + tile * kWgmmaBWords), c);
      }
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    typename Instruction::Accumulator sum = {};
#pragma unroll
    for (int i = 0; i < kWgmmaAccumulators; ++i) sum += c[i];
    sink[thread_index()] = sum;
    write_elapsed(start, elapsed);
  }
}

}  // namespace calibrate
