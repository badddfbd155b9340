// What kernels that shape themselves by the GPU ask it, and shared memory beyond the 48 KiB that every kernel may have.
#pragma once

#include "common.cuh"

// Shared memory whose size the launch gives; aligned as TMA and swizzled tiles want it.
#ifndef ROOFLENS_SHARED
#define ROOFLENS_SHARED(NAME) extern __shared__ __align__(1024) unsigned char NAME[]
#endif

namespace rooflens {

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  ROOFLENS_CUDA(cudaGetDevice(&device));
  ROOFLENS_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

template <typename... Parameters>
void allow_shared(void (*kernel)(Parameters...), int bytes) {
  ROOFLENS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

}  // namespace rooflens
