// pointer_chase: one thread follows a chain of addresses. Nothing but latency: each load waits for the one before.
//
// A step reads one 4-byte link in a 128-byte line of its own: 32 bytes (a sector) of traffic, and a full round trip.
// The time for a step IS the latency: of HBM when the chain is longer than L2, of L2 when it fits.
#include "../common.cuh"

namespace {

constexpr int kLineWords = 32;

// Full-period generator modulo a power of two (multiplier 1 modulo 4, increment odd): one cycle through all lines.
struct NextLine {
  std::uint32_t mask;
  __host__ __device__ std::uint32_t operator()(long long line) const {
    return (static_cast<std::uint32_t>(line) * 1664525u + 1013904223u) & mask;
  }
};

// The link stands in the first word of its line.
struct LinkWord {
  NextLine next;
  __host__ __device__ std::uint32_t operator()(long long word) const {
    return word % kLineWords == 0 ? next(word / kLineWords) : 0u;
  }
};

__global__ void pointer_chase(int steps, const std::uint32_t* __restrict__ links, std::uint32_t* __restrict__ last) {
  std::uint32_t line = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    line = __ldcg(links + static_cast<long long>(line) * kLineWords);  // .cg: cached in L2, not in L1
  }
  *last = line;
}

rooflens::Check compare(std::uint32_t result, long long steps, NextLine next) {
  std::uint32_t line = 0;
  for (long long step = 0; step < steps; ++step) line = next(line);
  rooflens::Check check{0.0};
  check.compare(result, line, 1.0);
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long lines = arguments.take("lines", 1LL << 22, 4, 1LL << 30);
  const long long steps = arguments.take("steps", 1LL << 14, 1, 1LL << 30);
  arguments.finish();
  rooflens::require((lines & (lines - 1)) == 0, "`--lines` must be a power of two");
  rooflens::require_gpu();

  const NextLine next{static_cast<std::uint32_t>(lines - 1)};
  const rooflens::DeviceArray<std::uint32_t> links(lines * kLineWords);
  const rooflens::DeviceArray<std::uint32_t> last(1);
  links.fill(LinkWord{next});
  const auto launch = [&] { pointer_chase<<<1, 1>>>(static_cast<int>(steps), links.data(), last.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{0.0};
  if (arguments.check()) check = compare(last.download().front(), steps, next);
  return rooflens::answer("pointer_chase", arguments, timing, check);
}
