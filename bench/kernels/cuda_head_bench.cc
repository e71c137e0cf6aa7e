/// The LM head on the CUDA backend: forward and backward through `Backend`,
/// with the logits kept (`keep`, three products) or formed again (`lean`,
/// four), as FLOPs a second, and the memory that it takes beside its results.
/// One case a process: scratch memory of a case before is not seen again.

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "bench/kernels/cuda_bench.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels {
namespace {

constexpr HeadBlocks kBlocks = {8192, 16000};

// A million numbers, over and over.
Buffer NormalBf16(int64_t count, float scale) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<uint16_t> values(1000003);
  for (uint16_t& value : values) value = FloatToBf16(normal(random));
  Buffer buffer = Allocate(count * 2);
  auto filled = std::min(count, static_cast<int64_t>(values.size()));
  Check(Cuda().Copy(values.data(), buffer.data(), filled * 2));
  while (filled < count) {
    const int64_t more = std::min(filled, count - filled);
    Check(Cuda().Copy(buffer.data(), buffer.as<uint16_t>() + filled, more * 2));
    filled += more;
  }
  Check(Cuda().Synchronize());
  return buffer;
}

int64_t FreeBytes() { return Check(Cuda().Memory()).free_bytes; }

class Head {
 public:
  Head(int64_t tokens, int64_t dim, int64_t rows)
      : tokens_(tokens),
        dim_(dim),
        rows_(rows),
        hidden_(NormalBf16(tokens * dim, 1.0F)),
        weights_(NormalBf16(rows * dim, 0.02F)),
        statistics_(Allocate(3 * tokens * 4)),
        upstream_(Upload(std::vector<float>(
            static_cast<size_t>(tokens), 1.0F / static_cast<float>(tokens)))),
        hidden_gradient_(Allocate(tokens * dim * 4)),
        main_grad_(Allocate(rows * dim * 4)) {
    std::mt19937_64 random(9);
    std::vector<int64_t> targets(static_cast<size_t>(tokens));
    for (int64_t& target : targets) {
      target = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
    }
    targets_ = Upload(targets);
    free_bytes_ = FreeBytes();
  }

  double flops(int products) const {
    return 2.0 * products * static_cast<double>(tokens_) *
           static_cast<double>(dim_) * static_cast<double>(rows_);
  }

  // This percentage of them.
  void KeepLogits(int64_t percentage = 100) {
    const HeadKept kept =
        HeadKept::Of(slice(), tokens_, DType::kBf16, kBlocks);
    kept_ = Allocate(kept.gradient_offset +
                     (kept.size_bytes - kept.gradient_offset) * percentage /
                         100);
  }

  void Forward() {
    Check(Cuda().KeepHeadTokenStatistics(
        slice(), inputs(), kBlocks, kept(),
        {floats(0), floats(1), floats(2), nullptr, nullptr}));
  }
  void Backward() {
    Check(Cuda().HeadGradients(slice(), inputs(), merged(), kBlocks, kept(),
                               hidden_gradient_.as<float>(), main_grad(),
                               nullptr));
  }
  void HiddenGradient() {
    Check(Cuda().KeptHeadHiddenGradient(slice(), inputs(), merged(), kBlocks,
                                        kept(), hidden_gradient_.as<float>()));
  }
  // Taken since the operands were there.
  double ExtraMiB() const {
    return static_cast<double>(free_bytes_ - FreeBytes()) / (1 << 20);
  }

 private:
  float* floats(int64_t array) const {
    return statistics_.as<float>() + array * tokens_;
  }
  HeadSlice slice() const {
    return {weights_.data(), DType::kBf16, nullptr, rows_, dim_};
  }
  HeadInputs inputs() const {
    return {hidden_.data(), DType::kBf16, tokens_, targets_.as<int64_t>()};
  }
  HeadMerged merged() const {
    return {floats(0), floats(1), upstream_.as<float>(), upstream_.as<float>()};
  }
  MainGrad main_grad() const {
    return {main_grad_.data(), DType::kFp32, rows_, dim_, dim_};
  }
  std::span<std::byte> kept() const {
    if (kept_.size_bytes() == 0) return {};
    return {kept_.as<std::byte>(), static_cast<size_t>(kept_.size_bytes())};
  }

  const int64_t tokens_;
  const int64_t dim_;
  const int64_t rows_;
  Buffer hidden_;
  Buffer weights_;
  Buffer targets_;
  Buffer statistics_;
  Buffer upstream_;
  Buffer hidden_gradient_;
  Buffer main_grad_;
  Buffer kept_;
  int64_t free_bytes_ = 0;
};

Head HeadOf(const benchmark::State& state) {
  return {state.range(0), state.range(1), state.range(2)};
}

// One call after another, so that `work` may wait for the stream.
template <typename Work>
void TimeProducts(benchmark::State& state, const Head& head, int products,
                  Work work) {
  work();
  Check(Cuda().Synchronize());
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    work();
    Check(Cuda().Synchronize());
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
  state.counters["FLOP/s"] = benchmark::Counter(
      head.flops(products), benchmark::Counter::kIsIterationInvariantRate,
      benchmark::Counter::kIs1000);
  // The first run takes the scratch memory, which stays.
  static double extra = 0;
  extra = std::max(extra, head.ExtraMiB());
  state.counters["extra_MiB"] = extra;
}

void CudaHeadKeep(benchmark::State& state) {
  Head head = HeadOf(state);
  head.KeepLogits();
  TimeProducts(state, head, 3, [&] {
    head.Forward();
    head.Backward();
  });
}

// Between keep and lean: the rest of the blocks is formed again.
void CudaHeadKeepPart(benchmark::State& state) {
  Head head = HeadOf(state);
  head.KeepLogits(state.range(3));
  TimeProducts(state, head, 3, [&] {
    head.Forward();
    head.Backward();
  });
}

void CudaHeadLean(benchmark::State& state) {
  Head head = HeadOf(state);
  TimeProducts(state, head, 4, [&] {
    head.Forward();
    head.Backward();
  });
}

void CudaHeadForward(benchmark::State& state) {
  Head head = HeadOf(state);
  head.KeepLogits();
  TimeProducts(state, head, 1, [&] { head.Forward(); });
}

// Until a client would have its answer.
void CudaHeadHiddenGradientFirst(benchmark::State& state) {
  Head head = HeadOf(state);
  head.KeepLogits();
  TimeProducts(state, head, 2, [&] {
    head.Forward();
    head.HiddenGradient();
  });
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"tokens", "dim", "rows"})
      ->Args({8192, 4096, 128256})
      ->Args({16384, 768, 50304})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK(CudaHeadKeep)->Apply(Shapes);
BENCHMARK(CudaHeadLean)->Apply(Shapes);
BENCHMARK(CudaHeadKeepPart)
    ->ArgNames({"tokens", "dim", "rows", "percentage"})
    ->Args({8192, 4096, 128256, 25})
    ->Args({8192, 4096, 128256, 50})
    ->Args({8192, 4096, 128256, 75})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(CudaHeadForward)->Apply(Shapes);
BENCHMARK(CudaHeadHiddenGradientFirst)->Apply(Shapes);

}  // namespace
}  // namespace rowhouse::kernels
