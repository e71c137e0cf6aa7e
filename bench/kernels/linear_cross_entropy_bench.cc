/// The LM head on the CPU backend, one thread, beside bare calls of
/// cblas_sgemm for the same products on fp32 operands: FLOPs a second of CPU
/// time of each, and the ratio of the whole head to the three products.
///
/// The context names OpenBLAS's kernels, and the backend's; ROWHOUSE_CPU_ISA
/// chooses those. Where it says Prescott on a newer
/// processor than OpenBLAS knows, set OPENBLAS_CORETYPE (say, SkylakeX): the
/// products are some ten times faster.

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
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

std::vector<float> Normal(int64_t count, float scale) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = normal(random);
  return values;
}

// `values` as elements of `dtype`, kBf16 or kFp32.
std::vector<std::byte> Encode(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> encoded(values.size() *
                                 static_cast<size_t>(SizeOf(dtype)));
  if (dtype == DType::kFp32) {
    std::memcpy(encoded.data(), values.data(), encoded.size());
    return encoded;
  }
  auto* to = reinterpret_cast<uint16_t*>(encoded.data());
  for (const float x : values) *to++ = FloatToBf16(x);
  return encoded;
}

// A slice with its statistics, in memory of the CPU.
class Head {
 public:
  explicit Head(DType dtype)
      : dtype_(dtype),
        backend_(MakeBackend({BackendKind::kCpu, 0, 1}).value()),
        weights_(Encode(dtype, Normal(kRows * kDim, 0.02F))),
        hidden_(Encode(dtype, Normal(kTokens * kDim, 1.0F))),
        targets_(kTokens, 5),
        statistics_(3 * kTokens),
        upstream_(kTokens, 1.0F / kTokens),
        hidden_gradient_(kTokens * kDim),
        main_grad_(kRows * kDim) {
    const int64_t size =
        HeadKept::Of(slice(), kTokens, dtype, blocks_).size_bytes;
    kept_ = backend_->Allocate(size).value();
    Statistics();
    HiddenGradient(true);
  }

  const Backend& backend() const { return *backend_; }

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
    return {weights_.data(), dtype_, nullptr, kRows, kDim};
  }
  HeadInputs inputs() const {
    return {hidden_.data(), dtype_, kTokens, targets_.data()};
  }
  HeadMerged merged() const {
    return {statistics_.data(), statistics_.data() + kTokens, upstream_.data(),
            upstream_.data()};
  }
  std::span<std::byte> Kept(bool keep) const {
    if (!keep) return {};
    return {kept_.as<std::byte>(), static_cast<size_t>(kept_.size_bytes())};
  }

  const DType dtype_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::byte> weights_;
  std::vector<std::byte> hidden_;
  std::vector<int64_t> targets_;
  std::vector<float> statistics_;
  std::vector<float> upstream_;
  std::vector<float> hidden_gradient_;
  std::vector<float> main_grad_;
  HeadBlocks blocks_;
  Buffer kept_;
};

Head& TheHead(DType dtype) {
  static Head* const bf16 = new Head(DType::kBf16);
  static Head* const fp32 = new Head(DType::kFp32);
  return dtype == DType::kBf16 ? *bf16 : *fp32;
}

// Of a benchmark whose first argument says whether operands are fp32.
DType TypeOf(const benchmark::State& state) {
  return state.range(0) != 0 ? DType::kFp32 : DType::kBf16;
}

void HeadTokenStatistics(benchmark::State& state) {
  Head& head = TheHead(TypeOf(state));
  for (auto _ : state) head.Statistics();
  CountFlops(state, kProductFlops);
}
BENCHMARK(HeadTokenStatistics)
    ->ArgName("fp32")
    ->DenseRange(0, 1)
    ->Unit(benchmark::kMillisecond);

void HeadHiddenGradient(benchmark::State& state) {
  Head& head = TheHead(TypeOf(state));
  for (auto _ : state) head.HiddenGradient(state.range(1) != 0);
  CountFlops(state, 2 * kProductFlops);
}
BENCHMARK(HeadHiddenGradient)
    ->ArgNames({"fp32", "keep"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

void HeadWeightGradient(benchmark::State& state) {
  const bool kept = state.range(1) != 0;
  Head& head = TheHead(TypeOf(state));
  for (auto _ : state) head.WeightGradient(kept);
  CountFlops(state, kept ? kProductFlops : 2 * kProductFlops);
}
BENCHMARK(HeadWeightGradient)
    ->ArgNames({"fp32", "kept"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

// The three products whole, on fp32 operands.
class BareProducts {
 public:
  void Logits() {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kTokens, kRows, kDim,
                1, hidden_.data(), kDim, weights_.data(), kDim, 0,
                logits_.data(), kRows);
  }
  void HiddenGradient() {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kTokens, kDim, kRows,
                1, logits_.data(), kRows, weights_.data(), kDim, 0, out_.data(),
                kDim);
  }
  void WeightGradient() {
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kRows, kDim, kTokens,
                1, logits_.data(), kRows, hidden_.data(), kDim, 1, out_.data(),
                kDim);
  }

 private:
  std::vector<float> hidden_ = std::vector<float>(kTokens * kDim, 0.5F);
  std::vector<float> weights_ = std::vector<float>(kRows * kDim, 0.25F);
  std::vector<float> logits_ = std::vector<float>(kTokens * kRows, 0.125F);
  std::vector<float> out_ = std::vector<float>(std::max(kTokens, kRows) * kDim);
};

BareProducts& TheProducts() {
  openblas_set_num_threads(1);
  static BareProducts* const products = new BareProducts;
  return *products;
}

enum Product : int64_t {
  kLogits = 0,
  kHiddenGradient = 1,
  kWeightGradient = 2
};

void BareGemm(benchmark::State& state) {
  BareProducts& products = TheProducts();
  for (auto _ : state) {
    switch (static_cast<Product>(state.range(0))) {
      case kLogits:
        products.Logits();
        break;
      case kHiddenGradient:
        products.HiddenGradient();
        break;
      case kWeightGradient:
        products.WeightGradient();
        break;
    }
  }
  CountFlops(state, kProductFlops);
}
BENCHMARK(BareGemm)
    ->ArgName("product")
    ->DenseRange(kLogits, kWeightGradient)
    ->Unit(benchmark::kMillisecond);

// Seconds of this thread's CPU time that `work` takes.
template <typename Work>
double CpuSeconds(const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) +
           1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

// Statistics, hidden gradient and weight gradient, in turns with the three bare
// products: `of_sgemm` is the CPU time of the one over that of the other.
void WholeHead(benchmark::State& state) {
  Head& head = TheHead(TypeOf(state));
  BareProducts& products = TheProducts();
  const bool kept = state.range(1) != 0;
  double head_seconds = 0;
  double bare_seconds = 0;
  for (auto _ : state) {
    const double seconds = CpuSeconds([&] {
      head.Statistics();
      head.HiddenGradient(kept);
      head.WeightGradient(kept);
    });
    state.SetIterationTime(seconds);
    head_seconds += seconds;
    bare_seconds += CpuSeconds([&] {
      products.Logits();
      products.HiddenGradient();
      products.WeightGradient();
    });
  }
  CountFlops(state, 3 * kProductFlops);
  state.counters["of_sgemm"] = head_seconds / bare_seconds;
}
BENCHMARK(WholeHead)
    ->ArgNames({"fp32", "kept"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->UseManualTime()
    ->MinTime(2)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rowhouse::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("openblas_kernels", openblas_get_corename());
  benchmark::AddCustomContext(
      "backend", rowhouse::kernels::TheHead(rowhouse::kernels::DType::kBf16)
                     .backend()
                     .Description());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
