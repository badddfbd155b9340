// attention_ladder: softmax(Q K^T / sqrt(width)) V of each head, three times; a rung removes the wall of that before.
//
// The work is the same on all of them, 4 heads length^2 width FLOP (softmax not counted), and so is what has to be read
// and written: Q, K, V and the result; scores are neither. `--rung` 1 to 3 selects the file of that number.
#include "../common.cuh"

#include "01_naive.cuh"
#include "02_online_softmax.cuh"
#include "03_tensor_core.cuh"

namespace {

constexpr long long kLargestTile = 128;
constexpr long long kMaxLength = 32768;
constexpr long long kMaxScores = 1LL << 31;  // the kernels count them with ints
constexpr long long kLastRung = 3;

// Roundings of a long sum go both ways: they grow like the root of its length. The score that a weight comes from is a
// sum, too, and a power of two is good to 2^-22: four times the tolerance.
double tolerance_of(long long length) {
  return 4.0 * std::sqrt(static_cast<double>(length + kWidth)) * rooflens::kFloatRounding;
}

// A weight that was rounded to fp16 is off by 2^-11 at most, either way: of a sum of them, that over the root of their
// number is left, and four times as much in the worst of thousands of results. A key that is missing is larger still.
double half_tolerance_of(long long length) {
  return tolerance_of(length) + 4.0 * 0x1p-11 / std::sqrt(static_cast<double>(length));
}

// Compares whole rows: the weights of a row are worked out once.
template <typename Source>
rooflens::Check compare(const std::vector<float>& result, const Shape& shape, Source q, Source k, Source v,
                        double tolerance) {
  rooflens::Check check{tolerance};
  const long long length = shape.length;
  const rooflens::Sample sample(shape.rows(), 2 * length * kWidth);
  std::vector<double> weights(static_cast<std::size_t>(length));
  for (long long s = 0; s < sample.size(); ++s) {
    const long long row = sample.at(s);
    const long long head = row / length * length;
    double all = 0.0;
    for (long long key = 0; key < length; ++key) {
      double score = 0.0;
      for (long long i = 0; i < kWidth; ++i) {
        score += static_cast<double>(q(row * kWidth + i)) * k((head + key) * kWidth + i);
      }
      all += weights[static_cast<std::size_t>(key)] = std::exp(score / std::sqrt(static_cast<double>(kWidth)));
    }
    for (long long column = 0; column < kWidth; ++column) {
      double sum = 0.0;
      double magnitude = 0.0;
      for (long long key = 0; key < length; ++key) {
        const double share = weights[static_cast<std::size_t>(key)] / all * v((head + key) * kWidth + column);
        sum += share;
        magnitude += std::abs(share);
      }
      check.compare(result[static_cast<std::size_t>(row * kWidth + column)], sum, magnitude);
    }
  }
  return check;
}

template <typename Value, typename Source, typename Rung>
int run(const rooflens::Arguments& arguments, const Shape& shape, double tolerance, long long launches, Rung rung) {
  const Source q_source{1};
  const Source k_source{2};
  const Source v_source{3};
  const long long size = static_cast<long long>(shape.rows()) * kWidth;
  const rooflens::DeviceArray<Value> q(size);
  const rooflens::DeviceArray<Value> k(size);
  const rooflens::DeviceArray<Value> v(size);
  const rooflens::DeviceArray<float> out(size);
  q.fill(q_source);
  k.fill(k_source);
  v.fill(v_source);
  const auto launch = [&] { rung(shape, q.data(), k.data(), v.data(), out.data()); };
  rooflens::warm_up(launch);

  const rooflens::Timing timing = rooflens::run_in_range(arguments, launches, launch);
  rooflens::Check check{tolerance};
  if (arguments.check()) check = compare(out.download(), shape, q_source, k_source, v_source, tolerance);
  return rooflens::answer("attention_ladder", arguments, timing, check);
}

int run_naive(const rooflens::Arguments& arguments, const Shape& shape) {
  const rooflens::DeviceArray<float> scores(static_cast<long long>(shape.rows()) * shape.length);
  const auto rung = [&](const Shape& of, const float* q, const float* k, const float* v, float* out) {
    naive::launch(of, q, k, v, scores.data(), out);
  };
  return run<float, rooflens::RandomFloat>(arguments, shape, tolerance_of(shape.length), 3, rung);
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long rung = arguments.take("rung", 1, 1, kLastRung);
  const long long heads = arguments.take("heads", 16, 1, 65535);
  const long long length = arguments.take("length", 4096, kLargestTile, kMaxLength);
  const long long width = arguments.take("width", kWidth, 1, kMaxLength);
  arguments.finish();
  rooflens::require(length % kLargestTile == 0, "`--length` must be a multiple of 128, the largest tile of the ladder");
  rooflens::require(width == kWidth, "`--width` must be 64, for which the kernels are written");
  rooflens::require(heads * length * length < kMaxScores,
                    "`--heads` x `--length` x `--length` must be less than 2^31");
  rooflens::require_gpu();

  const Shape shape{static_cast<int>(heads), static_cast<int>(length)};
  if (rung == 1) return run_naive(arguments, shape);
  if (rung == 2) {
    return run<float, rooflens::RandomFloat>(arguments, shape, tolerance_of(length), 1, online_softmax::launch);
  }
  return run<__half, rooflens::RandomHalf>(arguments, shape, half_tolerance_of(length), 1, tensor_core::launch);
}
