/// The LM head on the CPU backend, one thread, beside bare calls of
/// cblas_sgemm for the same products on fp32 operands: FLOPs a second of CPU
/// time of each.
///
/// The context names OpenBLAS's kernels. Where it says Prescott on a newer
/// processor than OpenBLAS knows, set OPENBLAS_CORETYPE (say, SkylakeX): the
/// products are some ten times faster.

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {
namespace {

constexpr int64_t kTokens = 1024;
constexpr int64_t kRows = 8192;
constexpr int64_t kDim = 768;
constexpr double kProductFlops = 2.0 * kTokens * kRows * kDim;

void CountFlops(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1000);
}

std::vector<uint16_t> RandomBf16(int64_t count, float scale) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& x : values) x = FloatToBf16(normal(random));
  return values;
}

// A bf16 slice with its statistics, in memory of the CPU.
class Head {
 public:
  Head()
      : backend_(MakeBackend({BackendKind::kCpu, 0, 1}).value()),
        weights_(RandomBf16(kRows * kDim, 0.02F)),
        hidden_(RandomBf16(kTokens * kDim, 1.0F)),
        targets_(kTokens, 5),
        statistics_(3 * kTokens),
        upstream_(kTokens, 1.0F / kTokens),
        hidden_gradient_(kTokens * kDim),
        main_grad_(kRows * kDim) {
    const int64_t size =
        HeadKept::Of(slice(), kTokens, DType::kBf16, blocks_).size_bytes;
    kept_ = backend_->Allocate(size).value();
    Statistics();
    HiddenGradient(true);
  }

  void Statistics() {
    float* data = statistics_.data();
    backend_
        ->HeadTokenStatistics(slice(), inputs(), blocks_,
                              {data, data + kTokens, data + 2 * kTokens})
        .IgnoreError();
  }
  void HiddenGradient(bool keep) {
    backend_
        ->HeadHiddenGradient(slice(), inputs(), merged(), blocks_, Kept(keep),
                             hidden_gradient_.data())
        .IgnoreError();
  }
  void WeightGradient(bool kept) {
    backend_
        ->HeadWeightGradient(
            slice(), inputs(), merged(), blocks_, Kept(kept),
            {main_grad_.data(), DType::kFp32, kRows, kDim, kDim}, nullptr)
        .IgnoreError();
  }

 private:
  HeadSlice slice() const {
    return {weights_.data(), DType::kBf16, nullptr, kRows, kDim};
  }
  HeadInputs inputs() const {
    return {hidden_.data(), DType::kBf16, kTokens, targets_.data()};
  }
  HeadMerged merged() const {
    return {statistics_.data(), statistics_.data() + kTokens, upstream_.data()};
  }
  std::span<std::byte> Kept(bool keep) const {
    if (!keep) return {};
    return {kept_.as<std::byte>(), static_cast<size_t>(kept_.size_bytes())};
  }

  std::unique_ptr<Backend> backend_;
  std::vector<uint16_t> weights_;
  std::vector<uint16_t> hidden_;
  std::vector<int64_t> targets_;
  std::vector<float> statistics_;
  std::vector<float> upstream_;
  std::vector<float> hidden_gradient_;
  std::vector<float> main_grad_;
  HeadBlocks blocks_;
  Buffer kept_;
};

Head& TheHead() {
  static Head* const head = new Head;
  return *head;
}

void HeadTokenStatistics(benchmark::State& state) {
  Head& head = TheHead();
  for (auto _ : state) head.Statistics();
  CountFlops(state, kProductFlops);
}
BENCHMARK(HeadTokenStatistics)->Unit(benchmark::kMillisecond);

void HeadHiddenGradient(benchmark::State& state) {
  Head& head = TheHead();
  for (auto _ : state) head.HiddenGradient(state.range(0) != 0);
  CountFlops(state, 2 * kProductFlops);
}
BENCHMARK(HeadHiddenGradient)
    ->ArgName("keep")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond);

void HeadWeightGradient(benchmark::State& state) {
  const bool kept = state.range(0) != 0;
  Head& head = TheHead();
  for (auto _ : state) head.WeightGradient(kept);
  CountFlops(state, kept ? kProductFlops : 2 * kProductFlops);
}
BENCHMARK(HeadWeightGradient)
    ->ArgName("kept")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond);

// The three products whole: logits, hidden gradient, weight gradient.
enum Product : int64_t {
  kLogits = 0,
  kHiddenGradient = 1,
  kWeightGradient = 2
};

void BareGemm(benchmark::State& state) {
  TheHead();  // Sets OpenBLAS to one thread.
  const std::vector<float> hidden(kTokens * kDim, 0.5F);
  const std::vector<float> weights(kRows * kDim, 0.25F);
  std::vector<float> logits(kTokens * kRows, 0.125F);
  std::vector<float> out(std::max(kTokens, kRows) * kDim);
  for (auto _ : state) {
    switch (static_cast<Product>(state.range(0))) {
      case kLogits:
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kTokens, kRows,
                    kDim, 1, hidden.data(), kDim, weights.data(), kDim, 0,
                    logits.data(), kRows);
        break;
      case kHiddenGradient:
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kTokens, kDim,
                    kRows, 1, logits.data(), kRows, weights.data(), kDim, 0,
                    out.data(), kDim);
        break;
      case kWeightGradient:
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kRows, kDim,
                    kTokens, 1, logits.data(), kRows, hidden.data(), kDim, 1,
                    out.data(), kDim);
        break;
    }
  }
  CountFlops(state, kProductFlops);
}
BENCHMARK(BareGemm)
    ->ArgName("product")
    ->DenseRange(kLogits, kWeightGradient)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rowhouse::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("openblas_kernels", openblas_get_corename());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
