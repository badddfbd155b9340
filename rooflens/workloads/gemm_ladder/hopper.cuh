// What rung 11 needs of PTX: barriers that count bytes, TMA, and wgmma. In code for 9.0a only; host code sees it all.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "../common.cuh"

namespace hopper {

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kIsHere = true;
#else
constexpr bool kIsHere = false;
#endif

#define HOPPER_SHARED(NAME) extern __shared__ __align__(1024) unsigned char NAME[]

using TensorMap = CUtensorMap;

__device__ inline std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

// ---- barriers: a phase ends when its arrival and all of its bytes are there ------------------------------------------

__device__ inline void barrier_start(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

// Makes new barriers visible to TMA.
__device__ inline void barriers_started() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void barrier_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

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

// ---- wgmma: four warps multiply 64x16 by 16x128, both in shared memory -----------------------------------------------

// PTX ISA, "matrix descriptor format": start address, two offsets in units of 16 bytes, swizzle of 128 bytes.
__device__ inline std::uint64_t descriptor(const void* tile, std::uint64_t leading, std::uint64_t stride) {
  return (shared_address(tile) & 0x3ffff) / 16 | leading / 16 << 16 | stride / 16 << 32 | 1ull << 62;
}

__device__ inline void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void multiply_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most so many groups of multiplications are not done.
template <int groups>
__device__ void multiplied_but() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

#define HOPPER_C8(I) \
  "+f"(c[I]), "+f"(c[I + 1]), "+f"(c[I + 2]), "+f"(c[I + 3]), "+f"(c[I + 4]), "+f"(c[I + 5]), "+f"(c[I + 6]), "+f"(c[I + 7])

// c += A B. Rows of A follow K, rows of B follow N: the last 1 transposes B. Of the warp w and the lane l, c[4 j + 2 i + e]
// is C[16 w + 8 i + l / 4][8 j + 2 (l % 4) + e].
__device__ inline void multiply_64x128x16(float (&c)[64], std::uint64_t a, std::uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
      " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
      " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
      " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63},"
      " %64, %65, 1, 1, 1, 0, 1;"
      : HOPPER_C8(0), HOPPER_C8(8), HOPPER_C8(16), HOPPER_C8(24), HOPPER_C8(32), HOPPER_C8(40), HOPPER_C8(48),
        HOPPER_C8(56)
      : "l"(a), "l"(b));
}

// ---- the host ---------------------------------------------------------------------------------------------------------

inline void require_hopper() {
  int device = 0;
  int major = 0;
  ROOFLENS_CUDA(cudaGetDevice(&device));
  ROOFLENS_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  rooflens::require(major == 9, "rung 11 needs compute capability 9.0: no other GPU has wgmma");
}

template <typename Kernel>
void allow_shared(Kernel* kernel, int bytes) {
  ROOFLENS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace hopper
