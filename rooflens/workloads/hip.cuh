// What common.cuh takes from CUDA, by the names that HIP has for it: `hipcc` compiles the workloads that need no more.
//
//     hipcc -O3 -std=c++17 --offload-arch=gfx942 -x hip rooflens/workloads/roofline/main.cu -o roofline
//
// Ranges are NVIDIA's: they mark nothing here. A wavefront of 64 lanes changes no result of those workloads.
#pragma once

#include <hip/hip_runtime.h>

#define cudaError_t hipError_t
#define cudaSuccess hipSuccess
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDevice hipGetDevice
#define cudaDeviceGetAttribute hipDeviceGetAttribute
#define cudaDevAttrL2CacheSize hipDeviceAttributeL2CacheSize
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaMalloc hipMalloc
#define cudaFree hipFree
#define cudaMemcpy hipMemcpy
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaEvent_t hipEvent_t
#define cudaEventCreate hipEventCreate
#define cudaEventDestroy hipEventDestroy
#define cudaEventRecord hipEventRecord
#define cudaEventElapsedTime hipEventElapsedTime

using nvtxRangeId_t = unsigned long long;
inline nvtxRangeId_t nvtxRangeStartA(const char*) { return 0; }
inline void nvtxRangeEnd(nvtxRangeId_t) {}
