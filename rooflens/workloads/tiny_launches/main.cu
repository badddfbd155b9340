// tiny_launches: many kernels that are shorter than their launches, one by one or as one CUDA graph.
//
// A kernel computes z = a x + y on n elements: 2 n FLOP, 12 n bytes; at n = 1024 that is 12 KiB, done in about the time
// that an empty kernel takes. Launched one by one, the GPU waits for the host between them. A graph hands all of them
// over at once: the gaps between kernels go, the kernels stay as small as they are.
#include "../common.cuh"

namespace {

constexpr int kThreads = 256;
constexpr float kA = 0.75f;

__global__ void tiny(int n, float a, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ z) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) z[i] = fmaf(a, x[i], y[i]);
}

// `launches` kernels recorded once; a graph launch costs the host one call for all of them.
class Graph {
 public:
  template <typename Record>
  explicit Graph(Record record) {
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    ROOFLENS_CUDA(cudaStreamCreate(&stream));
    ROOFLENS_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    record(stream);
    ROOFLENS_CUDA(cudaStreamEndCapture(stream, &graph));
    ROOFLENS_CUDA(cudaGraphInstantiateWithFlags(&executable_, graph, 0));
    ROOFLENS_CUDA(cudaGraphDestroy(graph));
    ROOFLENS_CUDA(cudaStreamDestroy(stream));
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(executable_); }

  void launch() const { ROOFLENS_CUDA(cudaGraphLaunch(executable_, nullptr)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

rooflens::Check compare(const std::vector<float>& result, rooflens::RandomFloat x, rooflens::RandomFloat y) {
  rooflens::Check check{rooflens::kFloatRounding};
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double added = static_cast<double>(kA) * x(static_cast<long long>(i));
    const double start = y(static_cast<long long>(i));
    check.compare(result[i], start + added, std::abs(start) + std::abs(added));
  }
  return check;
}

}  // namespace

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  const long long n = arguments.take("n", 1024, 1, 1 << 24);
  const long long launches = arguments.take("launches", 1000, 1, 100'000);
  const bool as_graph = arguments.take("graph", 0, 0, 1) != 0;
  arguments.finish();
  rooflens::require_gpu();

  const rooflens::RandomFloat x_source{1};
  const rooflens::RandomFloat y_source{2};
  const rooflens::DeviceArray<float> x(n);
  const rooflens::DeviceArray<float> y(n);
  const rooflens::DeviceArray<float> z(n);
  x.fill(x_source);
  y.fill(y_source);
  const unsigned blocks = rooflens::blocks_for(n, kThreads);
  const int size = static_cast<int>(n);
  const auto one_by_one = [&](cudaStream_t stream) {
    for (long long l = 0; l < launches; ++l) {
      tiny<<<blocks, kThreads, 0, stream>>>(size, kA, x.data(), y.data(), z.data());
    }
    ROOFLENS_CUDA(cudaGetLastError());
  };
  const Graph graph(one_by_one);
  const auto launch = [&] { as_graph ? graph.launch() : one_by_one(nullptr); };
  rooflens::warm_up(launch);
  rooflens::warm_up([&] { graph.launch(); });

  rooflens::Timing timing = rooflens::run_in_range(arguments, launches, launch);
  // Launched one by one, the host's gaps would be timed too. The graph runs the same kernels back to back: what is left
  // of the wall time beside that is gaps.
  timing.launch = [&] { graph.launch(); };
  rooflens::Check check{rooflens::kFloatRounding};
  if (arguments.check()) check = compare(z.download(), x_source, y_source);
  return rooflens::answer("tiny_launches", arguments, timing, check);
}
