// Stands in for CUDA on a machine without a GPU: kernels run on the CPU, thread by thread, deterministically.
//
// A thread of a block is a fiber; it runs until it meets a barrier or ends, then the next one does. So a barrier that
// is missing shows (a thread reads what later ones have not written yet), and with the compiler's sanitizers so do
// accesses outside of an allocation and misaligned vectors. It tells nothing about speed and replaces no GPU.
#pragma once

#include <ucontext.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#define __global__
#define __host__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define ROOFLENS_SHARED(NAME) alignas(1024) static unsigned char NAME[227 * 1024]

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(8) int2 {
  int x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulator {

[[noreturn]] inline void stop(const char* why) {
  std::fprintf(stderr, "emulator: %s\n", why);
  std::abort();
}

enum class State { ready, at_block_barrier, at_warp_barrier, polling, done };

constexpr std::size_t kStackBytes = 64 * 1024;  // the sanitizer clears its notes on a whole stack at every switch

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  State state = State::done;
};

inline ucontext_t scheduler;
inline std::vector<Fiber> fibers;
inline std::size_t current;
inline long long news;  // how often something happened that a polling thread may wait for
inline const std::function<void()>* body;

inline void run_body() {
  (*body)();
  fibers[current].state = State::done;
  swapcontext(&fibers[current].context, &scheduler);
}

inline void wait(State barrier) {
  fibers[current].state = barrier;
  swapcontext(&fibers[current].context, &scheduler);
}

// Lets the others run until a condition holds that one of them brings about.
template <typename Condition>
void wait_until(Condition holds) {
  while (!holds()) wait(State::polling);
}

// What the lanes of a warp show one another, in turns of two: the one before may still be read while the next is written.
template <typename Value>
struct Shown {
  Value turns[2];
  unsigned turn;
};
template <typename Value>
inline Shown<Value> shown[1024];

template <typename Value>
Value& show() {
  Shown<Value>& mine = shown<Value>[current];
  return mine.turns[++mine.turn % 2];
}

// Waits for the other lanes, and returns what the warp shows.
template <typename Value>
class Warp {
 public:
  Warp() {
    wait(State::at_warp_barrier);
    first_ = current - current % 32;
  }
  const Value& operator[](std::size_t lane) const {
    return shown<Value>[first_ + lane].turns[shown<Value>[current].turn % 2];
  }

 private:
  std::size_t first_;
};

inline void resume(std::size_t index) {
  current = index;
  const auto i = static_cast<unsigned>(index);
  threadIdx = dim3(i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y));
  swapcontext(&scheduler, &fibers[index].context);
}

inline void run_block(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    getcontext(&fibers[i].context);
    fibers[i].context.uc_stack.ss_sp = fibers[i].stack.get();
    fibers[i].context.uc_stack.ss_size = kStackBytes;
    fibers[i].context.uc_link = &scheduler;
    makecontext(&fibers[i].context, run_body, 0);
    fibers[i].state = State::ready;
  }
  for (bool running = true; running;) {
    std::size_t done = 0;
    std::size_t at_barrier = 0;
    std::size_t polling = 0;
    const long long old_news = news;
    for (std::size_t i = 0; i < threads; ++i) {
      if (fibers[i].state != State::done) resume(i);
      done += fibers[i].state == State::done;
      at_barrier += fibers[i].state == State::at_block_barrier;
      polling += fibers[i].state == State::polling;
    }
    if (polling != 0 && polling + done == threads && news == old_news) stop("every thread waits for another one");
    if (at_barrier != 0 && at_barrier != threads) stop("not every thread of a block reaches the same barrier");
    running = done != threads;
  }
}

struct Launch {
  dim3 grid, block;
  std::function<void()> body;
};

inline std::vector<Launch>* recording = nullptr;
inline long long ranges = 0;
inline bool in_range = false;
inline long long launches_in_range = 0;
inline std::string range_name;

inline void execute(const Launch& launch) {
  const std::size_t threads = launch.block.x * launch.block.y * launch.block.z;
  if (threads == 0 || threads > 1024 || launch.grid.y > 65535) stop("CUDA refuses this launch");
  launches_in_range += in_range;
  if (fibers.size() < threads) fibers.resize(threads);
  gridDim = launch.grid;
  blockDim = launch.block;
  body = &launch.body;
  for (unsigned z = 0; z < launch.grid.z; ++z)
    for (unsigned y = 0; y < launch.grid.y; ++y)
      for (unsigned x = 0; x < launch.grid.x; ++x) {
        blockIdx = dim3(x, y, z);
        run_block(threads);
      }
}

// `kernel<<<grid, block>>>(arguments...)` is rewritten into a call of this.
template <typename Kernel, typename... Arguments>
void launch(dim3 grid, dim3 block, Kernel kernel, Arguments... arguments) {
  Launch one{grid, block, [=] { kernel(arguments...); }};
  if (recording != nullptr) {
    recording->push_back(one);
  } else {
    execute(one);
  }
}

// What a test asks for at the end: how often a range was opened, and what ran inside.
struct Witness {
  ~Witness() {
    std::fprintf(stderr, "{\"ranges\": %lld, \"name\": \"%s\", \"launches\": %lld}\n", ranges, range_name.c_str(),
                 launches_in_range);
  }
};
inline Witness witness;

}  // namespace emulator

inline void __syncthreads() { emulator::wait(emulator::State::at_block_barrier); }
inline void __syncwarp() { emulator::wait(emulator::State::at_warp_barrier); }

inline float __shfl_xor_sync(unsigned, float value, int apart) {
  emulator::show<float>() = value;
  const emulator::Warp<float> warp;
  return warp[emulator::current % 32 ^ static_cast<unsigned>(apart)];
}

template <typename Value>
Value __shfl_down_sync(unsigned, Value value, unsigned by) {
  emulator::show<Value>() = value;
  const emulator::Warp<Value> warp;
  const unsigned lane = emulator::current % 32;
  return lane + by < 32 ? warp[lane + by] : value;
}

template <typename Value>
Value __ldcg(const Value* from) {
  return *from;
}

template <typename Value>
Value atomicAdd(Value* to, Value value) {
  const Value before = *to;
  *to += value;
  return before;
}

using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0;
enum cudaMemcpyKind { cudaMemcpyDeviceToHost };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal };
using cudaStream_t = void*;
using cudaEvent_t = std::chrono::steady_clock::time_point*;
using cudaGraph_t = std::vector<emulator::Launch>*;
using cudaGraphExec_t = std::vector<emulator::Launch>*;

inline const char* cudaGetErrorString(cudaError_t) { return "none"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
// A GPU of one SM, so that a persistent grid takes more than one tile a block. Its shared memory can be another GPU's.
enum cudaDeviceAttr {
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrL2CacheSize,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMultiProcessorCount
};
inline int shared_bytes() {
  const char* given = std::getenv("EMULATED_SHARED_BYTES");
  return given == nullptr ? 227 * 1024 : std::atoi(given);
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor         ? 9
           : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? shared_bytes()
           : attribute == cudaDevAttrL2CacheSize                  ? 4096
                                                                  : 1;
  return cudaSuccess;
}
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int bytes) {
  if (bytes > shared_bytes()) emulator::stop("more shared memory than an SM has");
  return cudaSuccess;
}

inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }

// Memory comes filled with ones: as a float that is NaN, and shows wherever it is read unwritten.
inline cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (posix_memalign(data, 256, bytes) != 0) emulator::stop("out of memory");
  std::memset(*data, 0xFF, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* data) { return std::free(data), cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return *event = new std::chrono::steady_clock::time_point, cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event) {
  return *event = std::chrono::steady_clock::now(), cudaSuccess;
}
// EMULATED_MS says what the first events measure, one number each; those after them are timed.
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  static std::istringstream given(std::getenv("EMULATED_MS") != nullptr ? std::getenv("EMULATED_MS") : "");
  if (given >> *milliseconds) return cudaSuccess;
  return *milliseconds = std::chrono::duration<float, std::milli>(*end - *start).count(), cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t*) { return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return emulator::recording = new std::vector<emulator::Launch>, cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  *graph = emulator::recording;
  emulator::recording = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned) {
  return *executable = new std::vector<emulator::Launch>(*graph), cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  for (const emulator::Launch& launch : *executable) emulator::execute(launch);
  return cudaSuccess;
}
