// What programs need of Hopper's PTX: barriers that count bytes, TMA, and wgmma. In code for 9.0a only; host code sees it
// all.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "device.cuh"

namespace hopper {

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kIsHere = true;
#else
constexpr bool kIsHere = false;
#endif

constexpr int kRowBytes = 128;           // a row of a tile, as TMA swizzles it
constexpr int kAtomBytes = 8 * kRowBytes;  // eight rows: chunks of 16 bytes change places by the number of their row
constexpr int kGroup = 128;              // threads of four warps, which multiply together

using TensorMap = CUtensorMap;

__device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

// ---- barriers: a phase ends when its arrivals and all of its bytes are there -----------------------------------------

__device__ inline void barrier_start(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

// Makes new barriers visible to TMA.
__device__ inline void barriers_started() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and says how many bytes are to come before the phase ends.
__device__ inline void barrier_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

// Waits for the end of the phase of a parity; the one before the first has parity 1, and has ended.
__device__ inline void barrier_wait(std::uint64_t* barrier, int parity) {
  std::uint32_t is_over = 0;
  while (is_over == 0) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(is_over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
}

// ---- TMA: one thread has a box copied, swizzled so that eight rows of 128 bytes lie in different banks ---------------

__device__ inline void load_box(void* to, const TensorMap& map, int column, int row, std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

// Describes boxes of so many rows and 64 columns, 128 bytes, of a square matrix.
inline TensorMap tensor_map(const __half* matrix, int n, int rows) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
  ROOFLENS_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
#else
  ROOFLENS_CUDA(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status));
#endif
  rooflens::require(status == cudaDriverEntryPointSuccess, "this driver knows no TMA: it is older than CUDA 12");
  const auto size = static_cast<cuuint64_t>(n);
  const cuuint64_t sizes[] = {size, size};
  const cuuint64_t strides[] = {size * sizeof(__half)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(rows)};
  const cuuint32_t steps[] = {1, 1};
  TensorMap map;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(found)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<__half*>(matrix), sizes, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  rooflens::require(result == CUDA_SUCCESS, "cuTensorMapEncodeTiled fails");
  return map;
}

// ---- wgmma: four warps multiply two tiles, both in shared memory -----------------------------------------------------

// PTX ISA, "matrix descriptor format": start address, two offsets in units of 16 bytes, swizzle of 128 bytes.
__device__ inline std::uint64_t descriptor(const void* tile, std::uint64_t leading, std::uint64_t stride) {
  return (shared_address(tile) & 0x3ffff) / 16 | leading / 16 << 16 | stride / 16 << 32 | 1ull << 62;
}

// What threads stored in shared memory themselves, tensor cores see after this and a barrier.
__device__ inline void stores_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void multiply_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most so many groups of multiplications are not done.
template <int groups>
__device__ void multiplied_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

#define HOPPER_C8(KIND, I)                                                                                            \
  "+" KIND(c[I]), "+" KIND(c[I + 1]), "+" KIND(c[I + 2]), "+" KIND(c[I + 3]), "+" KIND(c[I + 4]), "+" KIND(c[I + 5]), \
      "+" KIND(c[I + 6]), "+" KIND(c[I + 7])
#define HOPPER_C64(KIND, I)                                                                                   \
  HOPPER_C8(KIND, I), HOPPER_C8(KIND, I + 8), HOPPER_C8(KIND, I + 16), HOPPER_C8(KIND, I + 24),               \
      HOPPER_C8(KIND, I + 32), HOPPER_C8(KIND, I + 40), HOPPER_C8(KIND, I + 48), HOPPER_C8(KIND, I + 56)

// Of the warp w of four and the lane l, c[4 j + 2 i + e] is C[16 w + 8 i + l / 4][8 j + 2 (l % 4) + e].

// c += A B, fp16 with fp32 sums. Rows of A follow K, rows of B follow N: the last 1 transposes B.
__device__ inline void multiply_64x256x16(float (&c)[128], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63,"
      " %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79,"
      " %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95,"
      " %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111,"
      " %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127},"
      " %128, %129, 1, 1, 1, 0, 1;"
      : HOPPER_C64("f", 0), HOPPER_C64("f", 64)
      : "l"(a), "l"(b));
}

// c += A B, int8 with int32 sums. Rows of A and columns of B follow K.
__device__ inline void multiply_64x128x32(int (&c)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},"
      " %64, %65, 1;"
      : HOPPER_C64("r", 0)
      : "l"(a), "l"(b));
}

// ---- the host ---------------------------------------------------------------------------------------------------------

inline void require_hopper() {
  rooflens::require(rooflens::device_attribute(cudaDevAttrComputeCapabilityMajor) == 9,
                    "this needs compute capability 9.0: no other GPU has wgmma");
}

}  // namespace hopper
