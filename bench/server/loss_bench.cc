/// A head's loss over loopback, through the client library: 1,024 bf16 tokens
/// against 16,384 bf16 rows of 768. The ceiling is bare `sgemm` in this
/// process.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "bench/server/deployment.h"
#include "bench/support/ceiling.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"

namespace rowhouse::bench {
namespace {

constexpr int64_t kDim = 768;

int64_t TokenCount() { return Size(1024, 32); }
int64_t RowCount() { return Size(16384, 128); }

class Loss {
 public:
  Loss()
      : hidden_(static_cast<size_t>(TokenCount() * kDim)),
        gradient_(hidden_.size()),
        targets_(DrawNumbers(Spread::kZipf, TokenCount(), RowCount(), 1)) {
    client::TableSpec spec;
    spec.row_count = RowCount();
    spec.dim = kDim;
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = 1;
    spec.dense = client::DenseTableSpec{.has_bias = true,
                                        .max_head_token_count = TokenCount()};
    trainer_ = std::move(TheDeployment().MakeTable("loss", spec).front());
    head_ = Check(client::LmHead::Create(*trainer_));
    const std::vector<uint16_t> values = NormalBf16();
    for (size_t i = 0; i < hidden_.size(); ++i) {
      hidden_[i] = values[i % values.size()];
    }
  }
  ~Loss() {
    head_ = nullptr;
    trainer_ = nullptr;
    TheDeployment().cluster().DeleteTable("loss").IgnoreError();
  }

  // Forward and backward, until the hidden gradient is there.
  absl::Status Answer() {
    const auto loss = head_->Forward(
        {.hidden = std::as_bytes(std::span(hidden_)), .targets = targets_},
        {.event = trainer_->next_event()});
    if (!loss.ok()) return loss.status();
    return (*loss)->Backward(1.0, std::as_writable_bytes(std::span(gradient_)));
  }
  // Until the weight gradient is folded.
  absl::Status Fold() { return head_->FlushWeightGradient(); }
  absl::Status Compute() {
    const absl::Status status = Answer();
    return status.ok() ? Fold() : status;
  }

  // Ends the event, so that its tokens are free for the next.
  void EndEvent() {
    const int64_t event = trainer_->next_event();
    Check(trainer_->SealAndCommit(event, client::SkipEvent()));
    Check(trainer_->WaitForEvent(event));
  }

 private:
  std::vector<uint16_t> hidden_;
  std::vector<uint16_t> gradient_;
  std::vector<int64_t> targets_;
  std::unique_ptr<client::Trainer> trainer_;
  std::unique_ptr<client::LmHead> head_;
};

Work Products(double count) {
  const auto tokens = static_cast<double>(TokenCount());
  const auto rows = static_cast<double>(RowCount());
  return {.flops = count * 2 * tokens * rows * kDim, .items = tokens};
}

// Three products of tokens and rows; forming one of them twice counts once.
void LinearCrossEntropy(benchmark::State& state) {
  auto& loss = Kept<Loss>();
  Measure(
      state, Products(3), [&] { return loss.Compute(); },
      [&] { loss.EndEvent(); });
}
BENCHMARK(LinearCrossEntropy)->Apply(Defaults);

// The same without the weight gradient, which the server forms later.
void HiddenGradientAnswered(benchmark::State& state) {
  auto& loss = Kept<Loss>();
  Measure(
      state, Products(2), [&] { return loss.Answer(); },
      [&] { loss.EndEvent(); });
}
BENCHMARK(HiddenGradientAnswered)->Apply(Defaults);

using Seconds = std::chrono::duration<double>;

// The median of some calls of `work`, each in an event of its own.
template <typename Call>
Seconds TimeOf(Loss& loss, Call work) {
  constexpr size_t kCalls = 7;
  std::vector<Seconds> times;
  while (times.size() < kCalls) {
    loss.EndEvent();
    const auto start = std::chrono::steady_clock::now();
    Check(work());
    times.push_back(std::chrono::steady_clock::now() - start);
  }
  std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
  return times[kCalls / 2];
}

// A client that computes for as long as the weight gradient takes, as soon as
// it has its hidden gradient, and then waits for the fold. `hidden_share` is
// how much of the weight gradient's time it did not wait for.
void LossBesideClientWork(benchmark::State& state) {
  auto& loss = Kept<Loss>();
  const Seconds all = TimeOf(loss, [&] { return loss.Compute(); });
  const Seconds answered = TimeOf(loss, [&] { return loss.Answer(); });
  const Seconds weight_gradient = std::max(all - answered, Seconds(0));
  const auto busy = [&] {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < weight_gradient) {
    }
  };
  std::vector<Seconds> waits;
  const bool timed = Time(
      state,
      [&] {
        absl::Status status = loss.Answer();
        if (!status.ok()) return status;
        busy();
        const auto start = std::chrono::steady_clock::now();
        status = loss.Fold();
        waits.push_back(std::chrono::steady_clock::now() - start);
        return status;
      },
      [&] { loss.EndEvent(); });
  if (!timed) return;
  const auto middle = waits.begin() + static_cast<int64_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  Report(state, Products(3), GemmFlopsPerSecond());  // The client's work too.
  state.counters["answered_ms"] = 1e3 * answered.count();
  state.counters["weight_gradient_ms"] = 1e3 * weight_gradient.count();
  state.counters["hidden_share"] =
      weight_gradient > Seconds(0)
          ? std::max(1 - *middle / weight_gradient, 0.0)
          : 1.0;
}
BENCHMARK(LossBesideClientWork)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
