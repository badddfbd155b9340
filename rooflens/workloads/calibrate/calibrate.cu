// What this GPU attains: HBM, L2 and shared-memory bandwidth, CUDA-core and tensor-core rates, on random data.
//
// Every rate comes from one kernel that fills the GPU once and does nothing else. A repetition runs for 5 to 10 ms,
// after about 300 ms of the same load; `--iterations` says how many there are. NOT YET RUN ON A GPU.
#include "../common.cuh"
#include "arch.cuh"
#include "document.cuh"
#include "dram.cuh"
#include "fma.cuh"
#include "l2.cuh"
#include "mma.cuh"
#include "rates.cuh"
#include "shared_memory.cuh"
#include "wgmma.cuh"

namespace calibrate {

constexpr long long kL2TimesForDram = 64;      // what stays in L2 from the last pass is under 2 % of a buffer
constexpr long long kLeastDramBytes = 1LL << 30;

class Calibration {
 public:
  Calibration(const cudaDeviceProp& gpu, long long repetitions)
      : gpu_(gpu),
        repetitions_(repetitions),
        elapsed_(1),
        sink_(static_cast<long long>(gpu.multiProcessorCount) * gpu.maxThreadsPerMultiProcessor) {
    const rooflens::DeviceArray<Code> code(1);
    describe_code<<<1, 1>>>(code.data());
    ROOFLENS_CUDA(cudaGetLastError());
    code_ = code.download().front();
  }

  const std::vector<Rate>& rates() const { return rates_; }

  void dram() {
    const unsigned read_blocks = blocks_of(read_dram, kDramThreads);
    const unsigned copy_blocks = blocks_of(copy_dram, kDramThreads);
    const long long bytes = dram_bytes();
    const rooflens::DeviceArray<std::uint32_t> from(bytes / 4);
    const rooflens::DeviceArray<std::uint32_t> to(bytes / 4);
    from.fill(RandomWord{1});
    to.fill(RandomWord{2});
    const long long read_vectors = whole_steps(bytes / 16, read_blocks);
    const long long copy_vectors = whole_steps(bytes / 16, copy_blocks);
    add("dram_read", "byte", 16.0 * read_vectors, [&](int passes) {
      read_dram<<<read_blocks, kDramThreads>>>(passes, read_vectors, from.as<const uint4>(), sink<std::uint32_t>(),
                                               elapsed_.data());
    });
    add("dram_copy", "byte", 32.0 * copy_vectors, [&](int passes) {
      copy_dram<<<copy_blocks, kDramThreads>>>(passes, copy_vectors, from.as<const uint4>(), to.as<uint4>(),
                                               elapsed_.data());
    });
  }

  void l2() {
    long long vectors = kL2Step;
    while (2 * 16 * vectors <= gpu_.l2CacheSize / 4) vectors *= 2;
    const rooflens::DeviceArray<std::uint32_t> buffer(4 * vectors);
    buffer.fill(RandomWord{3});
    const unsigned blocks = blocks_of(read_l2, kL2Threads);
    add("l2", "byte", 16.0 * kL2Loads * kL2Threads * blocks, [&](int passes) {
      read_l2<<<blocks, kL2Threads>>>(passes, vectors, buffer.as<const uint4>(), sink<std::uint32_t>(),
                                      elapsed_.data());
    });
  }

  void smem() {
    const unsigned blocks = blocks_of(read_shared, kSharedThreads);
    add("smem", "byte", 16.0 * kSharedLoads * kSharedThreads * blocks, [&](int passes) {
      read_shared<<<blocks, kSharedThreads>>>(passes, sink<std::uint32_t>(), elapsed_.data());
    });
  }

  template <typename Value>
  void fma(const char* name, int flop_of_one) {
    const unsigned blocks = blocks_of(fma_chains<Value>, kFmaThreads);
    add(name, "FLOP", 1.0 * flop_of_one * kFmasInPass * kFmaThreads * blocks, [&](int passes) {
      fma_chains<Value><<<blocks, kFmaThreads>>>(passes, sink<Value>(), elapsed_.data());
    });
  }

  template <typename Instruction>
  void mma(const char* name, const char* unit = "FLOP") {
    if (!Instruction::measured_on(code_.arch)) return;
    const unsigned blocks = blocks_of(mma_chains<Instruction>, kMmaThreads);
    add(name, unit, Instruction::kOperations * kMmasInPass * (kMmaThreads / 32) * blocks, [&](int passes) {
      mma_chains<Instruction>
          <<<blocks, kMmaThreads>>>(passes, sink<typename Instruction::Accumulator>(), elapsed_.data());
    });
  }

  template <typename Instruction>
  void wgmma(const char* name, const char* unit = "FLOP") {
    if (!code_.wgmma) return;
    const unsigned blocks = blocks_of(wgmma_chains<Instruction>, kWgmmaThreads);
    add(name, unit, Instruction::kOperations * kWgmmasInPass * (kWgmmaThreads / kWgmmaGroup) * blocks, [&](int passes) {
      wgmma_chains<Instruction>
          <<<blocks, kWgmmaThreads>>>(passes, sink<typename Instruction::Accumulator>(), elapsed_.data());
    });
  }

 private:
  template <typename Launch>
  void add(const char* name, const char* unit, double amount, Launch launch) {
    rates_.push_back(measure(name, unit, amount, repetitions_, elapsed_, launch));
  }

  // As many blocks as run at once: one wave, no tail.
  template <typename Kernel>
  unsigned blocks_of(Kernel kernel, int threads) const {
    int on_each = 0;
    ROOFLENS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&on_each, kernel, threads, 0));
    rooflens::require(on_each > 0, "a kernel does not fit on this GPU");
    return static_cast<unsigned>(on_each * gpu_.multiProcessorCount);
  }

  long long dram_bytes() const {
    std::size_t free = 0;
    std::size_t total = 0;
    ROOFLENS_CUDA(cudaMemGetInfo(&free, &total));
    const long long wanted = std::max(kLeastDramBytes, kL2TimesForDram * gpu_.l2CacheSize);
    return std::min(wanted, static_cast<long long>(free / 4)) / 16 * 16;
  }

  static long long whole_steps(long long vectors, unsigned blocks) {
    const long long step = kDramStep * blocks;
    rooflens::require(vectors >= step, "too little memory of this GPU is free");
    return vectors / step * step;
  }

  // Kernels write one value a thread, so that the compiler keeps what it was computed from.
  template <typename Value>
  Value* sink() const {
    static_assert(sizeof(Value) <= sizeof(double));
    return sink_.template as<Value>();
  }

  cudaDeviceProp gpu_;
  long long repetitions_;
  Code code_{};
  rooflens::DeviceArray<Elapsed> elapsed_;
  rooflens::DeviceArray<double> sink_;
  std::vector<Rate> rates_;
};

}  // namespace calibrate

int main(int argc, char** argv) {
  rooflens::Arguments arguments(argc, argv);
  arguments.finish();
  rooflens::require_gpu();
  cudaDeviceProp gpu{};
  ROOFLENS_CUDA(cudaGetDeviceProperties(&gpu, 0));

  calibrate::Calibration calibration(gpu, arguments.iterations());
  calibration.dram();
  calibration.l2();
  calibration.smem();
  calibration.fma<double>("fp64", 2);
  calibration.fma<float>("fp32", 2);
  calibration.fma<__half2>("fp16", 4);
  calibration.mma<calibrate::TuringFp16>("tensor_fp16");
  calibration.mma<calibrate::TuringFp16Acc16>("tensor_fp16_acc16");
  calibration.mma<calibrate::TuringInt8>("tensor_int8", "op");
  calibration.mma<calibrate::MmaBf16>("tensor_bf16");
  calibration.mma<calibrate::MmaFp16>("tensor_fp16");
  calibration.mma<calibrate::MmaFp16Acc16>("tensor_fp16_acc16");
  calibration.mma<calibrate::MmaTf32>("tensor_tf32");
  calibration.mma<calibrate::MmaFp8>("tensor_fp8");
  calibration.mma<calibrate::MmaInt8>("tensor_int8", "op");
  calibration.mma<calibrate::MmaFp64>("tensor_fp64");
  calibration.wgmma<calibrate::WgmmaBf16>("tensor_bf16_wgmma");
  calibration.wgmma<calibrate::WgmmaFp16>("tensor_fp16_wgmma");
  calibration.wgmma<calibrate::WgmmaTf32>("tensor_tf32_wgmma");
  calibration.wgmma<calibrate::WgmmaFp8>("tensor_fp8_wgmma");
  calibration.wgmma<calibrate::WgmmaInt8>("tensor_int8_wgmma", "op");
  calibrate::print_document(gpu, calibration.rates());
  return 0;
}
