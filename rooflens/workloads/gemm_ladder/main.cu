// gemm_ladder: C = A B, square, eleven times: every rung removes the wall that the one before it hits.
//
// The work is the same on all of them, 2 n^3 FLOP, and so are the compulsory bytes: A and B read, C written.
// `--rung` 1 to 11 selects the file of that number.
#include "../common.cuh"

#include "01_naive.cuh"
#include "02_coalesced.cuh"
#include "03_shared_tile.cuh"
#include "04_blocktile_1d.cuh"
#include "05_blocktile_2d.cuh"
#include "06_vectorized.cuh"
#include "07_warptile.cuh"
#include "08_tensor_core.cuh"
#include "09_autotuned.cuh"
#include "10_multistage.cuh"
#include "11_wgmma.cuh"
#include "cublas.cuh"

namespace {

constexpr long long kLargestTile = 128;
constexpr long long kMaxN = 32768;  // n^2 fits into an int: the kernels count with them
constexpr long long kFirstHalfRung = 8;
constexpr long long kAutotunedRung = 9;
constexpr long long kLastRung = 11;

using FloatRung = void (*)(int, const float*, const float*, float*);
constexpr FloatRung kFloatRungs[] = {naive::launch,        coalesced::launch,    shared_tile::launch,
                                     blocktile_1d::launch, blocktile_2d::launch, vectorized::launch,
                                     warptile::launch};
using HalfRung = void (*)(int, const __half*, const __half*, float*);
constexpr HalfRung kHalfRungs[] = {tensor_core::launch, nullptr, multistage::launch, wgmma::launch};

// Roundings of a long sum go both ways: they grow like the root of its length. A missing term is far larger.
double tolerance_of(long long n) { return std::sqrt(static_cast<double>(n)) * rooflens::kFloatRounding; }

template <typename Source>
rooflens::Check compare(const std::vector<float>& result, long long n, Source a, Source b, double tolerance) {
  rooflens::Check check{tolerance};
  const rooflens::Sample sample(n * n, n);
  for (long long s = 0; s < sample.size(); ++s) {
    const long long i = sample.at(s);
    double sum = 0.0;
    double magnitude = 0.0;
    for (long long k = 0; k < n; ++k) {
      const double product = static_cast<double>(a(i / n * n + k)) * b(k * n + i % n);
      sum += product;
      magnitude += std::abs(product);
    }
    check.compare(result[static_cast<std::size_t>(i)], sum, magnitude);
  }
  return check;
}

// What a rung has to say beside its times: the tile that a search chose.
template <typename Rung>
std::string told(const Rung&) {
  return "";
}
std::string told(const autotuned::Rung& rung) { return ", \"tile\": \"" + rung.tile() + "\""; }

template <typename Value, typename Source, typename Rung>
int run(const rooflens::Arguments& arguments, long long n, double tolerance, Rung rung) {
  const Source a_source{1};
  const Source b_source{2};
  const rooflens::DeviceArray<Value> a(n * n);
  const rooflens::DeviceArray<Value> b(n * n);
  const rooflens::DeviceArray<float> c(n * n);
  a.fill(a_source);
  b.fill(b_source);
  const int edge = static_cast<int>(n);
  const double cublas_ns = cublas::time_ns(arguments.iterations(), edge, a.data(), b.data(), c.data());
  const auto launch = [&] { rung(edge, a.data(), b.data(), c.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, 1, launch);
  rooflens::Check check{tolerance};
  if (arguments.check()) check = compare(c.download(), n, a_source, b_source, tolerance);
  return rooflens::answer("gemm_ladder", arguments, timing, check,
                          ", \"cublas_ns\": " + rooflens::json_number(cublas_ns) + told(rung));
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long rung = arguments.take("rung", 1, 1, kLastRung);
  const long long n = arguments.take("n", 4096, kLargestTile, kMaxN);
  arguments.finish();
  rooflens::require(n % kLargestTile == 0, "`--n` must be a multiple of 128, the largest tile of the ladder");
  rooflens::require_gpu();

  // Tensor cores cut low bits when they add instead of rounding: four times the tolerance.
  const double cut = 4.0 * tolerance_of(n);
  if (rung == kAutotunedRung) return run<__half, rooflens::RandomHalf>(arguments, n, cut, autotuned::Rung{});
  if (rung >= kFirstHalfRung) {
    return run<__half, rooflens::RandomHalf>(arguments, n, cut, kHalfRungs[rung - kFirstHalfRung]);
  }
  return run<float, rooflens::RandomFloat>(arguments, n, tolerance_of(n), kFloatRungs[rung - 1]);
}
