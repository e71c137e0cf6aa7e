/// The LM head on the backend's own threads: 1,024 bf16 tokens against a bf16
/// slice of 8,192 rows of 768. The ceiling is bare `sgemm`.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/support/array.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::bench {
namespace {

using kernels::DType;

constexpr int64_t kDim = 768;

int64_t TokenCount() { return Size(1024, 32); }
int64_t RowCount() { return Size(8192, 128); }

// Products of tokens and rows; the head is nothing else.
Work Products(int64_t count) {
  const auto tokens = static_cast<double>(TokenCount());
  const auto rows = static_cast<double>(RowCount());
  return {.flops = static_cast<double>(count) * 2 * tokens * rows * kDim,
          .items = tokens};
}

// A slice and tokens, with statistics and a kept logit gradient.
class Head {
 public:
  Head()
      : weights_(RowCount() * kDim, NormalBf16(0.02F)),
        hidden_(TokenCount() * kDim, NormalBf16()),
        targets_(TokenCount(), {5}),
        statistics_(3 * TokenCount()),
        upstream_(TokenCount(), {1.0F / 1024}),
        hidden_gradient_(TokenCount() * kDim),
        main_grad_(RowCount() * kDim),
        kept_(
            kernels::HeadKept::Of(slice(), TokenCount(), DType::kBf16, blocks_)
                .size_bytes) {
    Check(Statistics());
    Check(HiddenGradient(true));
    Check(TheBackend().Synchronize());
  }

  absl::Status Statistics() {
    float* data = statistics_.data();
    return TheBackend().HeadTokenStatistics(
        slice(), inputs(), blocks_,
        {data, data + TokenCount(), data + 2 * TokenCount()});
  }
  absl::Status KeepStatistics() {
    float* data = statistics_.data();
    return TheBackend().KeepHeadTokenStatistics(
        slice(), inputs(), blocks_, KeptBytes(true),
        {data, data + TokenCount(), data + 2 * TokenCount()});
  }
  // Of what `KeepStatistics` has just left.
  absl::Status KeptHiddenGradient() {
    return TheBackend().KeptHeadHiddenGradient(slice(), inputs(), merged(),
                                               blocks_, KeptBytes(true),
                                               hidden_gradient_.data());
  }
  absl::Status Gradients(bool kept) {
    return TheBackend().HeadGradients(slice(), inputs(), merged(), blocks_,
                                      KeptBytes(kept), hidden_gradient_.data(),
                                      main_grad(), nullptr);
  }
  absl::Status HiddenGradient(bool keep) {
    return TheBackend().HeadHiddenGradient(slice(), inputs(), merged(), blocks_,
                                           KeptBytes(keep),
                                           hidden_gradient_.data());
  }
  absl::Status WeightGradient(bool kept) {
    return TheBackend().HeadWeightGradient(slice(), inputs(), merged(), blocks_,
                                           KeptBytes(kept), main_grad(),
                                           nullptr);
  }

 private:
  kernels::HeadSlice slice() const {
    return {weights_.data(), DType::kBf16, nullptr, RowCount(), kDim};
  }
  kernels::HeadInputs inputs() const {
    return {hidden_.data(), DType::kBf16, TokenCount(), targets_.data()};
  }
  kernels::HeadMerged merged() const {
    return {statistics_.data(), statistics_.data() + TokenCount(),
            upstream_.data(), upstream_.data()};
  }
  kernels::MainGrad main_grad() const {
    return {main_grad_.data(), DType::kFp32, RowCount(), kDim, kDim};
  }
  std::span<std::byte> KeptBytes(bool keep) const {
    if (!keep) return {};
    return {kept_.data(), static_cast<size_t>(kept_.count())};
  }

  kernels::HeadBlocks blocks_;
  Array<uint16_t> weights_;
  Array<uint16_t> hidden_;
  Array<int64_t> targets_;
  Array<float> statistics_;
  Array<float> upstream_;
  Array<float> hidden_gradient_;
  Array<float> main_grad_;
  Array<std::byte> kept_;
};

void HeadTokenStatistics(benchmark::State& state) {
  Head& head = Kept<Head>();
  Measure(state, Products(1), [&] { return head.Statistics(); });
}
BENCHMARK(HeadTokenStatistics)->Apply(Defaults);

void HeadHiddenGradient(benchmark::State& state) {
  Head& head = Kept<Head>();
  const bool keep = state.range(0) != 0;
  Measure(state, Products(2), [&] { return head.HiddenGradient(keep); });
}
BENCHMARK(HeadHiddenGradient)->Apply(Defaults)->ArgName("keep")->Arg(0)->Arg(1);

void HeadWeightGradient(benchmark::State& state) {
  Head& head = Kept<Head>();
  const bool kept = state.range(0) != 0;
  Measure(state, Products(kept ? 1 : 2),
          [&] { return head.WeightGradient(kept); });
}
BENCHMARK(HeadWeightGradient)->Apply(Defaults)->ArgName("kept")->Arg(0)->Arg(1);

void KeepHeadTokenStatistics(benchmark::State& state) {
  Head& head = Kept<Head>();
  Measure(state, Products(1), [&] { return head.KeepStatistics(); });
}
BENCHMARK(KeepHeadTokenStatistics)->Apply(Defaults);

// With the statistics that keep what it takes: until a client has its answer.
void KeptHeadHiddenGradient(benchmark::State& state) {
  Head& head = Kept<Head>();
  Measure(state, Products(2), [&] {
    absl::Status status = head.KeepStatistics();
    return status.ok() ? head.KeptHiddenGradient() : status;
  });
}
BENCHMARK(KeptHeadHiddenGradient)->Apply(Defaults);

// With the statistics too.
void HeadGradients(benchmark::State& state) {
  Head& head = Kept<Head>();
  const bool kept = state.range(0) != 0;
  Measure(state, Products(3), [&] {
    absl::Status status = kept ? head.KeepStatistics() : head.Statistics();
    return status.ok() ? head.Gradients(kept) : status;
  });
}
BENCHMARK(HeadGradients)->Apply(Defaults)->ArgName("kept")->Arg(0)->Arg(1);

// A loss and its gradients, against the three products that they need. The
// logits are formed twice, or three times where nothing is kept, and count
// once.
void HeadAll(benchmark::State& state) {
  Head& head = Kept<Head>();
  const bool kept = state.range(0) != 0;
  Measure(state, Products(3), [&] {
    absl::Status status = head.Statistics();
    if (status.ok()) status = head.HiddenGradient(kept);
    return status.ok() ? head.WeightGradient(kept) : status;
  });
}
BENCHMARK(HeadAll)->Apply(Defaults)->ArgName("kept")->Arg(0)->Arg(1);

}  // namespace
}  // namespace rowhouse::bench
