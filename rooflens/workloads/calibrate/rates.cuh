// From a launch to a rate: how long to run, how often, and the clock it ran at.
#pragma once

#include "clock.cuh"
#include "operands.cuh"

namespace calibrate {

constexpr double kRepetitionNs = 10e6;  // long against a launch (5 us) and a tick of the GPU's timer (1 us)
constexpr double kWarmUpNs = 300e6;     // clocks and power settle under the load itself
constexpr int kMostPasses = 1 << 28;

struct Rate {
  std::string name;
  std::string unit;
  std::vector<double> per_s;
  std::vector<double> sm_clock_hz;
};

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Finds the number of passes that takes one repetition.
template <typename Launch>
int passes_for(double wanted_ns, Launch launch) {
  rooflens::warm_up([&] { launch(1); });  // loading a kernel for the first time can take as long as a repetition
  int passes = 1;
  for (;;) {
    const double ns = rooflens::kernel_time_ns(1, [&] { launch(passes); });
    if (ns >= wanted_ns / 2 || passes >= kMostPasses) return passes;
    passes = static_cast<int>(std::min(double{kMostPasses}, passes * std::clamp(wanted_ns / ns, 2.0, 64.0)));
  }
}

// Measures `launch(passes)`, which does `amount` of `unit` a pass and leaves its clock in `elapsed`.
template <typename Launch>
Rate measure(const std::string& name, const std::string& unit, double amount, long long repetitions,
             const rooflens::DeviceArray<Elapsed>& elapsed, Launch launch) {
  const int passes = passes_for(kRepetitionNs, launch);
  rooflens::kernel_time_ns(static_cast<long long>(kWarmUpNs / kRepetitionNs), [&] { launch(passes); });
  Rate rate{name, unit + "/s", {}, {}};
  for (long long i = 0; i < repetitions; ++i) {
    const double ns = rooflens::kernel_time_ns(1, [&] { launch(passes); });
    const Elapsed seen = elapsed.download().front();
    rooflens::require(ns > 0 && seen.nanoseconds > 0, "the GPU's timer stands still");
    rate.per_s.push_back(amount * passes / ns * 1e9);
    rate.sm_clock_hz.push_back(static_cast<double>(seen.cycles) / static_cast<double>(seen.nanoseconds) * 1e9);
  }
  return rate;
}

}  // namespace calibrate
