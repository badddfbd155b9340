// cuBLAS on the same matrices, where it was there to compile against: what a rung is measured by.
#pragma once

#include <cuda_fp16.h>

#include <cmath>

#include "../common.cuh"

#ifdef ROOFLENS_CUBLAS
#include <cublas_v2.h>

namespace cublas {

inline void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) rooflens::fail(std::string(call) + ": " + cublasGetStatusString(status));
}

// cuBLAS counts by columns: what it sees of our rows are the transposes, and C^T = B^T A^T.
inline void multiply(cublasHandle_t handle, int n, const float* a, const float* b, float* c) {
  const float one = 1.0f;
  const float zero = 0.0f;
  check(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n, &zero, c, n), "cublasSgemm");
}

inline void multiply(cublasHandle_t handle, int n, const __half* a, const __half* b, float* c) {
  const float one = 1.0f;
  const float zero = 0.0f;
  check(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, CUDA_R_16F, n, a, CUDA_R_16F, n, &zero, c,
                     CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
}

// Time of `iterations` multiplications; `c` is overwritten.
template <typename Value>
double time_ns(long long iterations, int n, const Value* a, const Value* b, float* c) {
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  const auto launch = [&] { multiply(handle, n, a, b, c); };
  rooflens::warm_up(launch);
  const double time = rooflens::kernel_time_ns(iterations, launch);
  check(cublasDestroy(handle), "cublasDestroy");
  return time;
}

}  // namespace cublas

#else

namespace cublas {

template <typename Value>
double time_ns(long long, int, const Value*, const Value*, float*) {
  return std::nan("");
}

}  // namespace cublas

#endif
