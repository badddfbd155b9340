// What every CUDA workload shares: arguments, random operands, the profiled range, its timing, the check, the answer.
//
// A program prepares and warms up, marks ONE start/end NVTX range around its iterations, compares the result with a
// reference on the CPU and prints one line of JSON. Exit status 0 means that the result was right.
#pragma once

#if defined(__HIP__) || defined(__HIP_PLATFORM_AMD__)
#include "hip.cuh"
#else
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace rooflens {

// ---- errors ---------------------------------------------------------------------------------------------------------

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(1);
}

inline void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status != cudaSuccess) {
    fail(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " + cudaGetErrorString(status));
  }
}

#define ROOFLENS_CUDA(call) ::rooflens::check_cuda((call), #call, __FILE__, __LINE__)

inline void require_gpu() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    const char* reason = status == cudaSuccess ? "none found" : cudaGetErrorString(status);
    fail(std::string("no NVIDIA GPU can be used: ") + reason);
  }
}

// ---- arguments ------------------------------------------------------------------------------------------------------

// `--name value` pairs, every value a whole number. `--iterations` and `--check` are every program's.
class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (name.rfind("--", 0) != 0 || i + 1 == argc) fail("arguments are pairs `--name number`, not `" + name + "`");
      given_[name.substr(2)] = number(name, argv[i + 1]);
    }
    iterations_ = take("iterations", 10, 1, 1'000'000);
    check_ = take("check", 1, 0, 1) != 0;
  }

  // Returns the argument and forgets it; what `finish` still finds was misspelt.
  long long take(const std::string& name, long long fallback, long long minimum, long long maximum) {
    const auto found = given_.find(name);
    const long long value = found == given_.end() ? fallback : found->second;
    if (value < minimum || value > maximum) {
      fail("`--" + name + "` must be " + std::to_string(minimum) + " to " + std::to_string(maximum));
    }
    given_.erase(name);
    return value;
  }

  void finish() const {
    if (!given_.empty()) fail("this workload has no argument `--" + given_.begin()->first + "`");
  }

  long long iterations() const { return iterations_; }
  bool check() const { return check_; }

 private:
  static long long number(const std::string& name, const char* text) {
    char* end = nullptr;
    const long long value = std::strtoll(text, &end, 10);
    if (end == text || *end != '\0') fail("`" + name + "` takes a whole number, not `" + text + "`");
    return value;
  }

  std::map<std::string, long long> given_;
  long long iterations_ = 0;
  bool check_ = true;
};

inline void require(bool holds, const char* message) {
  if (!holds) fail(message);
}

// ---- random operands ------------------------------------------------------------------------------------------------

// The value at an index is computed, not drawn: the GPU fills with it and the CPU's reference recomputes it, so no
// operand is ever copied.
__host__ __device__ inline std::uint64_t random_bits(std::uint32_t seed, long long index) {
  std::uint64_t bits = static_cast<std::uint64_t>(index) + 0x9E3779B97F4A7C15ull * (seed + 1ull);
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
}

// Multiples of 2^-23 in [-1, 1): every one is a float, and no rounding takes place.
struct RandomFloat {
  std::uint32_t seed;
  __host__ __device__ float operator()(long long index) const {
    return static_cast<float>(static_cast<int>(random_bits(seed, index) >> 40) - (1 << 23)) * 0x1p-23f;
  }
};

// Multiples of 2^-10 in [-1, 1): every one is an fp16 number too.
struct RandomHalf {
  std::uint32_t seed;
  __host__ __device__ float operator()(long long index) const {
    return static_cast<float>(static_cast<int>(random_bits(seed, index) >> 53) - (1 << 10)) * 0x1p-10f;
  }
};

constexpr int kFillThreads = 256;

inline unsigned blocks_for(long long threads, int block) {
  const long long blocks = (threads + block - 1) / block;
  require(blocks >= 1 && blocks <= 2'147'483'647, "this size needs a grid that CUDA cannot launch");
  return static_cast<unsigned>(blocks);
}

template <typename Value, typename Source>
__global__ void fill_kernel(Value* out, long long size, Source source) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < size) out[i] = static_cast<Value>(source(i));
}

// Memory on the GPU; freed with its owner.
template <typename Value>
class DeviceArray {
 public:
  explicit DeviceArray(long long size) : size_(size) {
    ROOFLENS_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { static_cast<void>(cudaFree(data_)); }

  Value* data() const { return data_; }
  long long size() const { return size_; }

  template <typename Other>
  Other* as() const {
    return reinterpret_cast<Other*>(data_);
  }

  template <typename Source>
  void fill(Source source) const {
    fill_kernel<<<blocks_for(size_, kFillThreads), kFillThreads>>>(data_, size_, source);
    ROOFLENS_CUDA(cudaGetLastError());
    ROOFLENS_CUDA(cudaDeviceSynchronize());
  }

  std::vector<Value> download() const {
    std::vector<Value> host(static_cast<std::size_t>(size_));
    ROOFLENS_CUDA(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return host;
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(Value); }

  Value* data_ = nullptr;
  long long size_;
};

// ---- the profiled range ---------------------------------------------------------------------------------------------

constexpr int kWarmUps = 2;

// Loads the module, fills the instruction caches and lets the clock rise, before anything is marked or timed.
template <typename Launch>
void warm_up(Launch launch) {
  for (int i = 0; i < kWarmUps; ++i) launch();
  ROOFLENS_CUDA(cudaGetLastError());
  ROOFLENS_CUDA(cudaDeviceSynchronize());
}

struct Timing {
  long long launches = 0;
  long long wall_ns = 0;
  double kernel_ns = 0.0;
};

// A pair of events for each iteration: their intervals do not overlap, so their sum is their union.
class Stopwatch {
 public:
  explicit Stopwatch(long long iterations) : events_(static_cast<std::size_t>(2 * iterations)) {
    for (cudaEvent_t& event : events_) ROOFLENS_CUDA(cudaEventCreate(&event));
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    for (cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
  }

  template <typename Launch>
  void time(long long iteration, Launch launch) {
    const auto first = static_cast<std::size_t>(2 * iteration);
    ROOFLENS_CUDA(cudaEventRecord(events_[first]));
    launch();
    ROOFLENS_CUDA(cudaGetLastError());
    ROOFLENS_CUDA(cudaEventRecord(events_[first + 1]));
  }

  // After a synchronisation.
  double sum_ns() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < events_.size(); i += 2) {
      float milliseconds = 0.0f;
      ROOFLENS_CUDA(cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]));
      sum += 1e6 * milliseconds;
    }
    return sum;
  }

 private:
  std::vector<cudaEvent_t> events_;
};

// Times the kernels of `launch` with events, outside the range.
template <typename Launch>
double kernel_time_ns(long long iterations, Launch launch) {
  Stopwatch stopwatch(iterations);
  for (long long i = 0; i < iterations; ++i) stopwatch.time(i, launch);
  ROOFLENS_CUDA(cudaDeviceSynchronize());
  return stopwatch.sum_ns();
}

// Where one report holds many cases, ROOFLENS_CASE=workload.case names this one: its range, and its answer.
inline std::string case_name() {
  const char* name = std::getenv("ROOFLENS_CASE");
  return name == nullptr ? "" : name;
}

// Start/end ranges hold for the process, push/pop ones for a thread only. `ncu --nvtx-include rooflens` finds this one.
template <typename Launch>
Timing run_in_range(const Arguments& arguments, long long launches_per_iteration, Launch launch) {
  Stopwatch stopwatch(arguments.iterations());
  const std::string name = case_name();
  const nvtxRangeId_t range = nvtxRangeStartA("rooflens");
  const nvtxRangeId_t own = name.empty() ? range : nvtxRangeStartA(name.c_str());
  const auto start = std::chrono::steady_clock::now();
  for (long long i = 0; i < arguments.iterations(); ++i) stopwatch.time(i, launch);
  ROOFLENS_CUDA(cudaDeviceSynchronize());
  const auto end = std::chrono::steady_clock::now();
  if (!name.empty()) nvtxRangeEnd(own);
  nvtxRangeEnd(range);
  Timing timing;
  timing.launches = arguments.iterations() * launches_per_iteration;
  timing.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
  timing.kernel_ns = stopwatch.sum_ns();
  return timing;
}

// ---- the check ------------------------------------------------------------------------------------------------------

constexpr double kFloatRounding = 0x1p-24;  // largest relative error of one fp32 operation
constexpr long long kReferenceSteps = 1LL << 26;

// Which results are compared when the reference takes `steps` for each: all of them, or a random part with both ends.
class Sample {
 public:
  Sample(long long total, long long steps)
      : total_(total), size_(std::min(total, std::max(64LL, kReferenceSteps / std::max(1LL, steps)))) {}

  long long size() const { return size_; }

  long long at(long long i) const {
    if (size_ == total_) return i;
    if (i < 2) return i * (total_ - 1);
    return static_cast<long long>(random_bits(99, i) % static_cast<std::uint64_t>(total_));
  }

 private:
  long long total_;
  long long size_;
};

// The largest error, each relative to the magnitude of what was summed up in that result.
struct Check {
  double tolerance;
  double worst = 0.0;

  void compare(double result, double reference, double magnitude) {
    if (result == reference) return;
    const double error = std::abs(result - reference) / magnitude;
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }

  bool ok() const { return worst <= tolerance; }
};

// ---- the answer -----------------------------------------------------------------------------------------------------

inline std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Prints the one line of JSON and returns the exit status. Unchecked results have no error: `null`, and count as ok.
inline int answer(const char* workload, const Arguments& arguments, const Timing& timing, const Check& check,
                  const std::string& more = "") {
  const bool ok = !arguments.check() || check.ok();
  const std::string name = case_name();
  const std::string own = name.empty() ? "" : "\"case\": \"" + name.substr(name.find('.') + 1) + "\", ";
  std::printf(
      "{\"workload\": \"%s\", %s\"iterations\": %lld, \"launches\": %lld, \"wall_ns\": %lld, \"kernel_ns\": %s, "
      "\"max_relative_error\": %s, \"tolerance\": %s, \"ok\": %s%s}\n",
      workload, own.c_str(), arguments.iterations(), timing.launches, timing.wall_ns, json_number(timing.kernel_ns).c_str(),
      arguments.check() ? json_number(check.worst).c_str() : "null", json_number(check.tolerance).c_str(),
      ok ? "true" : "false", more.c_str());
  return ok ? 0 : 1;
}

}  // namespace rooflens
