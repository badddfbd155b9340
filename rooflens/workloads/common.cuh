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
#include <functional>
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

// What the range showed, and the work of one iteration, to be timed once the result has been compared.
struct Timing {
  long long launches = 0;
  long long wall_ns = 0;
  std::function<void()> launch;
};

class Event {
 public:
  Event() { ROOFLENS_CUDA(cudaEventCreate(&event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }

  void record() const { ROOFLENS_CUDA(cudaEventRecord(event_)); }

  // After a synchronisation.
  double ns_since(const Event& start) const {
    float milliseconds = 0.0f;
    ROOFLENS_CUDA(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return 1e6 * milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Times `count` launches by one pair of events: a pair around each would add microseconds to every one.
template <typename Launch>
double kernel_time_ns(long long count, const Launch& launch) {
  const Event start;
  const Event end;
  start.record();
  for (long long i = 0; i < count; ++i) launch();
  ROOFLENS_CUDA(cudaGetLastError());
  end.record();
  ROOFLENS_CUDA(cudaDeviceSynchronize());
  return end.ns_since(start);
}

__global__ void read_kernel(const float4* data, long long size, float* out) {
  float sum = 0.0f;
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += step) {
    sum += data[i].x + data[i].y + data[i].z + data[i].w;
  }
  if (sum == -1.0f) *out = sum;  // never, but the compiler cannot know: all values are 1
}

struct One {
  __host__ __device__ float operator()(long long) const { return 1.0f; }
};

// Replaces what L2 holds by reading twice its size. Reading leaves no lines that a later kernel must write back.
class Flush {
 public:
  Flush() : data_(floats()), out_(1) { data_.fill(One{}); }

  void operator()() const {
    const long long vectors = data_.size() / 4;
    const unsigned blocks = std::min(kMostBlocks, blocks_for(vectors, kFillThreads));
    read_kernel<<<blocks, kFillThreads>>>(data_.as<const float4>(), vectors, out_.data());
    ROOFLENS_CUDA(cudaGetLastError());
  }

 private:
  static constexpr unsigned kMostBlocks = 1024;

  static long long floats() {
    int device = 0;
    int l2_bytes = 0;
    ROOFLENS_CUDA(cudaGetDevice(&device));
    ROOFLENS_CUDA(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device));
    return std::max(4LL, 2LL * l2_bytes / static_cast<long long>(sizeof(float)) / 4 * 4);
  }

  DeviceArray<float> data_;
  DeviceArray<float> out_;
};

constexpr double kTimedNs = 2e7;  // an event is off by about a microsecond: 0.01 % of this
constexpr long long kMostTimed = 200;

// Times of one iteration; NaN where unknown.
struct Times {
  double warm_ns = std::numeric_limits<double>::quiet_NaN();  // operands are where the iteration before left them
  double cold_ns = std::numeric_limits<double>::quiet_NaN();  // operands are in DRAM
};

// Each sequence begins with a flush, during which the host queues the launches, so that no kernel waits for it. A cold
// iteration is timed with its flush, and the time of as many flushes is taken off.
inline Times times_of(const Timing& timing, long long iterations) {
  const double wall_ns = static_cast<double>(timing.wall_ns) / static_cast<double>(iterations);
  const long long count = std::clamp(static_cast<long long>(kTimedNs / std::max(1.0, wall_ns)), 1LL, kMostTimed);
  const Flush flush;
  flush();
  timing.launch();
  Times times;
  times.warm_ns = kernel_time_ns(count, timing.launch) / static_cast<double>(count);
  flush();
  const double flushes_ns = kernel_time_ns(count, flush);
  flush();
  const double both_ns = kernel_time_ns(count, [&] {
    flush();
    timing.launch();
  });
  if (both_ns > flushes_ns) times.cold_ns = (both_ns - flushes_ns) / static_cast<double>(count);
  return times;
}

// Where one report holds many cases, ROOFLENS_CASE=workload.case names this one: its range, and its answer.
inline std::string case_name() {
  const char* name = std::getenv("ROOFLENS_CASE");
  return name == nullptr ? "" : name;
}

// Start/end ranges hold for the process, push/pop ones for a thread only. `ncu --nvtx-include rooflens` finds this one.
template <typename Launch>
Timing run_in_range(const Arguments& arguments, long long launches_per_iteration, Launch launch) {
  const std::string name = case_name();
  const nvtxRangeId_t range = nvtxRangeStartA("rooflens");
  const nvtxRangeId_t own = name.empty() ? range : nvtxRangeStartA(name.c_str());
  const auto start = std::chrono::steady_clock::now();
  for (long long i = 0; i < arguments.iterations(); ++i) launch();
  ROOFLENS_CUDA(cudaGetLastError());
  ROOFLENS_CUDA(cudaDeviceSynchronize());
  const auto end = std::chrono::steady_clock::now();
  if (!name.empty()) nvtxRangeEnd(own);
  nvtxRangeEnd(range);
  Timing timing;
  timing.launches = arguments.iterations() * launches_per_iteration;
  timing.wall_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
  timing.launch = launch;
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
// A single iteration is for a profiler, whose times are its own: it is not timed again.
inline int answer(const char* workload, const Arguments& arguments, const Timing& timing, const Check& check,
                  const std::string& more = "") {
  const bool ok = !arguments.check() || check.ok();
  const long long iterations = arguments.iterations();
  const Times times = iterations > 1 ? times_of(timing, iterations) : Times{};
  const std::string name = case_name();
  const std::string own = name.empty() ? "" : "\"case\": \"" + name.substr(name.find('.') + 1) + "\", ";
  std::printf(
      "{\"workload\": \"%s\", %s\"iterations\": %lld, \"launches\": %lld, \"wall_ns\": %lld, \"kernel_ns\": %s, "
      "\"cold_ns\": %s, \"max_relative_error\": %s, \"tolerance\": %s, \"ok\": %s%s}\n",
      workload, own.c_str(), iterations, timing.launches, timing.wall_ns,
      json_number(times.warm_ns * static_cast<double>(iterations)).c_str(),
      json_number(times.cold_ns * static_cast<double>(iterations)).c_str(),
      arguments.check() ? json_number(check.worst).c_str() : "null", json_number(check.tolerance).c_str(),
      ok ? "true" : "false", more.c_str());
  return ok ? 0 : 1;
}

}  // namespace rooflens
