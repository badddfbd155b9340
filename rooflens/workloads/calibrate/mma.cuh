// The tensor cores by mma.sync, which every architecture from 7.5 on has.
//
// On 9.0 wgmma and on 10.x and 11.0 tcgen05 reach more: there these rates are mma.sync's, a lower bound of the chip's.
#pragma once

#include "arch.cuh"
#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr int kMmaThreads = 256;
constexpr int kMmaRows = 2;     // every A meets every B: eight independent accumulators, and operands that change
constexpr int kMmaColumns = 4;
constexpr int kMmasInPass = 32;

// One instruction: its operands, shape and registers (of A, B and C).
template <typename OperandType, typename AccumulatorType, int M, int N, int K, int As, int Bs, int Cs>
struct Mma {
  using Operand = OperandType;
  using Register = typename Operand::Register;
  using Accumulator = AccumulatorType;
  static constexpr int kAs = As;
  static constexpr int kBs = Bs;
  static constexpr int kCs = Cs;
  static constexpr double kOperations = 2.0 * M * N * K;
  __host__ __device__ static constexpr bool measured_on(int arch) { return arch >= 80; }
};

#define CALIBRATE_MMA_4_2_4(TYPES, KIND)                                                                        \
  asm volatile("mma.sync.aligned." TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+" KIND(c[0]), "+" KIND(c[1]), "+" KIND(c[2]), "+" KIND(c[3])                             \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

struct MmaBf16 : Mma<Bf16, float, 16, 8, 16, 4, 2, 4> {
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    CALIBRATE_MMA_4_2_4("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
  }
};

struct MmaFp16 : Mma<Fp16, float, 16, 8, 16, 4, 2, 4> {
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    CALIBRATE_MMA_4_2_4("m16n8k16.row.col.f32.f16.f16.f32", "f");
  }
};

struct MmaTf32 : Mma<Tf32, float, 16, 8, 8, 4, 2, 4> {
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    CALIBRATE_MMA_4_2_4("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
  }
};

// ptxas turns it into conversions and fp16 instructions for 9.0 and 10.x: not an fp8 rate.
struct MmaFp8 : Mma<Fp8, float, 16, 8, 32, 4, 2, 4> {
  __host__ __device__ static constexpr bool measured_on(int arch) { return arch == 89 || arch >= 120; }
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    CALIBRATE_MMA_4_2_4("m16n8k32.row.col.f32.e4m3.e4m3.f32", "f");
  }
};

struct MmaInt8 : Mma<Int8, std::uint32_t, 16, 8, 32, 4, 2, 4> {
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    CALIBRATE_MMA_4_2_4("m16n8k32.row.col.s32.s8.s8.s32", "r");
  }
};

struct MmaFp16Acc16 : Mma<Fp16, std::uint32_t, 16, 8, 16, 4, 2, 2> {
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};

struct MmaFp64 : Mma<Fp64, double, 8, 8, 4, 1, 1, 2> {
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a[0]), "d"(b[0]));
  }
};

// Turing's shapes: half as deep, or less. Later architectures have the ones above.
struct TuringFp16 : Mma<Fp16, float, 16, 8, 8, 2, 1, 4> {
  __host__ __device__ static constexpr bool measured_on(int arch) { return arch == 75; }
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
};

struct TuringFp16Acc16 : Mma<Fp16, std::uint32_t, 16, 8, 8, 2, 1, 2> {
  __host__ __device__ static constexpr bool measured_on(int arch) { return arch == 75; }
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
};

struct TuringInt8 : Mma<Int8, std::uint32_t, 8, 8, 16, 1, 1, 2> {
  __host__ __device__ static constexpr bool measured_on(int arch) { return arch == 75; }
  static __device__ void run(const Register* a, const Register* b, Accumulator* c) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(a[0]), "r"(b[0]));
  }
};

// One pass is kMmasInPass instructions a warp.
template <typename Instruction>
__global__ void __launch_bounds__(kMmaThreads)
    mma_chains(int passes, typename Instruction::Accumulator* sink, Elapsed* elapsed) {
  if constexpr (Instruction::measured_on(kArch)) {
    typename Instruction::Register a[kMmaRows][Instruction::kAs];
    typename Instruction::Register b[kMmaColumns][Instruction::kBs];
    typename Instruction::Accumulator c[kMmaRows][kMmaColumns][Instruction::kCs] = {};
#pragma unroll
    for (int row = 0; row < kMmaRows; ++row) {
#pragma unroll
      for (int i = 0; i < Instruction::kAs; ++i) a[row][i] = Instruction::Operand::random(row, 8 * thread_index() + i);
    }
#pragma unroll
    for (int column = 0; column < kMmaColumns; ++column) {
#pragma unroll
      for (int i = 0; i < Instruction::kBs; ++i) {
        b[column][i] = Instruction::Operand::random(kMmaRows + column, 8 * thread_index() + i);
      }
    }
    const Elapsed start = clock_now();
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
      for (int i = 0; i < kMmasInPass; ++i) {
        const int row = i / kMmaColumns % kMmaRows;
        const int column = i % kMmaColumns;
        Instruction::run(a[row], b[column], c[row][column]);
      }
    }
    typename Instruction::Accumulator sum = {};
#pragma unroll
    for (int i = 0; i < kMmaRows * kMmaColumns * Instruction::kCs; ++i) {
      sum += c[i / Instruction::kCs / kMmaColumns][i / Instruction::kCs % kMmaColumns][i % Instruction::kCs];
    }
    sink[thread_index()] = sum;
    write_elapsed(start, elapsed);
  }
}

}  // namespace calibrate
