// The architecture this code was compiled for: a kernel is empty where its instruction does not exist.
#pragma once

namespace calibrate {

#if defined(__CUDA_ARCH__)
constexpr int kArch = __CUDA_ARCH__ / 10;
#else
constexpr int kArch = 0;
#endif

// wgmma is in code for 9.0a only: `nvcc -gencode arch=compute_90a,code=sm_90a`.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kWgmma = true;
#else
constexpr bool kWgmma = false;
#endif

// What the code that the GPU really runs was compiled for; the host cannot know it otherwise.
struct Code {
  int arch;
  bool wgmma;
};

__global__ void describe_code(Code* code) { *code = {kArch, kWgmma}; }

}  // namespace calibrate
