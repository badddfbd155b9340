// The answer: one JSON document. A rate that this architecture does not have is absent.
#pragma once

#include <dlfcn.h>

#include "rates.cuh"

namespace calibrate {

inline std::string json_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

// The release of the driver, `580.65.06`: CUDA itself only knows the version of its interface.
inline std::string driver_release() {
  char release[96] = "";
  if (void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW)) {
    const auto start = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    const auto read = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
    if (start && read && start() == 0 && read(release, sizeof release) == 0) return release;
  }
  int version = 0;
  ROOFLENS_CUDA(cudaDriverGetVersion(&version));
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

inline void print_rate(const Rate& rate, const char* separator) {
  const auto [low, high] = std::minmax_element(rate.per_s.begin(), rate.per_s.end());
  std::printf("%s\n    %s: {\"unit\": %s, \"median\": %s, \"min\": %s, \"max\": %s, \"repetitions\": %zu, "
              "\"sm_clock_hz\": %s}",
              separator, json_text(rate.name).c_str(), json_text(rate.unit).c_str(),
              rooflens::json_number(median(rate.per_s)).c_str(), rooflens::json_number(*low).c_str(),
              rooflens::json_number(*high).c_str(), rate.per_s.size(),
              rooflens::json_number(median(rate.sm_clock_hz)).c_str());
}

// The clock of the document is the median over everything that was measured; each rate has its own beside it.
inline void print_document(const cudaDeviceProp& gpu, const std::vector<Rate>& rates) {
  std::vector<double> clocks;
  for (const Rate& rate : rates) clocks.insert(clocks.end(), rate.sm_clock_hz.begin(), rate.sm_clock_hz.end());
  std::printf("{\n  \"gpu\": %s,\n  \"compute_capability\": \"%d.%d\",\n  \"driver\": %s,\n  \"sm_clock_hz\": %s,\n"
              "  \"rates\": {",
              json_text(gpu.name).c_str(), gpu.major, gpu.minor, json_text(driver_release()).c_str(),
              rooflens::json_number(median(clocks)).c_str());
  const char* separator = "";
  for (const Rate& rate : rates) {
    print_rate(rate, separator);
    separator = ",";
  }
  std::printf("\n  }\n}\n");
}

}  // namespace calibrate
