/// A head's loss over loopback, through the client library: 1,024 bf16 tokens
/// against 16,384 bf16 rows of 768 with a bias; on a GPU 8,192 against 128,256
/// of 4,096 without. With `one_sided:1` hidden states and their gradient pass
/// through memory that client and server map; with `on_device:1` they lie in
/// the client's GPU (on a CPU, where any lie). The ceiling is bare `sgemm` in
/// this process.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "bench/server/deployment.h"
#include "bench/support/ceiling.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/quantile.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "client/internal/cluster_core.h"
#include "client/internal/one_sided_channel.h"
#include "kernels/buffer.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"

namespace rowhouse::bench {
namespace {

int64_t Dim() { return OnGpu() ? 4096 : 768; }
int64_t TokenCount() { return Size(OnGpu() ? 8192 : 1024, 32); }
int64_t RowCount() { return Size(OnGpu() ? 128256 : 16384, 128); }

class Loss {
 public:
  Loss(bool one_sided, bool on_device)
      : mapped_(one_sided ? std::make_unique<Deployment>("one_sided {}\n")
                          : nullptr),
        host_(static_cast<size_t>(TokenCount() * Dim())),
        targets_(DrawNumbers(Spread::kZipf, TokenCount(), RowCount(), 1)) {
    client::TableSpec spec;
    spec.row_count = RowCount();
    spec.dim = Dim();
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = 1;
    spec.dense = client::DenseTableSpec{.has_bias = !OnGpu(),
                                        .max_head_token_count = TokenCount()};
    trainer_ = std::move(server().MakeTable("loss", spec).front());
    head_ = Check(client::LmHead::Create(*trainer_));
    const std::vector<uint16_t> values = NormalBf16();
    for (size_t i = 0; i < host_.size(); ++i) {
      host_[i] = values[i % values.size()];
    }
    hidden_ = std::as_writable_bytes(std::span(host_));
    host_gradient_ = host_;
    gradient_ = std::as_writable_bytes(std::span(host_gradient_));
    if (!on_device) return;
    const auto size_bytes = static_cast<int64_t>(hidden_.size());
    device_ = Check(TheBackend().Allocate(2 * size_bytes));
    Check(TheBackend().Copy(hidden_.data(), device_.data(), size_bytes));
    Check(TheBackend().Synchronize());
    hidden_ = {device_.as<std::byte>(), hidden_.size()};
    gradient_ = {device_.as<std::byte>() + size_bytes, hidden_.size()};
  }
  ~Loss() {
    head_ = nullptr;
    trainer_ = nullptr;
    server().cluster().DeleteTable("loss").IgnoreError();
  }

  /// Whether all calls went the way that is to be measured.
  bool WentItsWay() {
    if (mapped_ == nullptr) return true;
    return dynamic_cast<client::internal::OneSidedChannel&>(
               mapped_->cluster().core()->channel(0))
               .head_count() == calls_;
  }

  // Forward and backward, until the hidden gradient is there.
  absl::Status Answer() {
    ++calls_;
    const auto loss = head_->Forward({.hidden = hidden_, .targets = targets_},
                                     {.event = trainer_->next_event()});
    if (!loss.ok()) return loss.status();
    return (*loss)->Backward(1.0, gradient_);
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
  Deployment& server() {
    return mapped_ == nullptr ? TheDeployment() : *mapped_;
  }

  std::unique_ptr<Deployment> mapped_;
  int64_t calls_ = 0;
  std::vector<uint16_t> host_;
  std::vector<uint16_t> host_gradient_;
  kernels::Buffer device_;
  std::span<std::byte> hidden_;
  std::span<std::byte> gradient_;
  std::vector<int64_t> targets_;
  std::unique_ptr<client::Trainer> trainer_;
  std::unique_ptr<client::LmHead> head_;
};

Work Products(double count) {
  const auto tokens = static_cast<double>(TokenCount());
  const auto rows = static_cast<double>(RowCount());
  return {.flops = count * 2 * tokens * rows * static_cast<double>(Dim()),
          .items = tokens};
}

Loss& LossOf(benchmark::State& state) {
  return Kept<Loss>(state.range(0) != 0, state.range(1) != 0);
}

void RequireItsWay(benchmark::State& state, Loss& loss) {
  Require(state, loss.WentItsWay(), "all calls are one-sided");
}

void Ways(benchmark::internal::Benchmark* benchmark) {
  Defaults(benchmark);
  benchmark->ArgNames({"one_sided", "on_device"})
      ->Args({0, 0})
      ->Args({1, 0})
      ->Args({1, 1});
}

// Three products of tokens and rows; forming one of them twice counts once.
void LinearCrossEntropy(benchmark::State& state) {
  auto& loss = LossOf(state);
  Measure(
      state, Products(3), [&] { return loss.Compute(); },
      [&] { loss.EndEvent(); });
  RequireItsWay(state, loss);
}
BENCHMARK(LinearCrossEntropy)->Apply(Ways);

// The same without the weight gradient, which the server forms later.
void HiddenGradientAnswered(benchmark::State& state) {
  auto& loss = LossOf(state);
  Measure(
      state, Products(2), [&] { return loss.Answer(); },
      [&] { loss.EndEvent(); });
  RequireItsWay(state, loss);
}
BENCHMARK(HiddenGradientAnswered)->Apply(Ways);

using Seconds = std::chrono::duration<double>;

Seconds TimeOf(absl::FunctionRef<absl::Status()> work) {
  const auto start = std::chrono::steady_clock::now();
  Check(work());
  return std::chrono::steady_clock::now() - start;
}

// A client that computes for as long as it would wait for the weight gradient,
// as soon as it has its hidden gradient, and then waits for the fold.
// `hidden_share` is how much of that wait is gone, where there was any: over
// gRPC a GPU has the weight gradient before the hidden gradient has arrived.
// The call by which it waits is in both.
void LossBesideClientWork(benchmark::State& state) {
  constexpr int kCalls = 7;
  auto& loss = LossOf(state);
  std::vector<Seconds> answers;
  std::vector<Seconds> folds;
  for (int i = 0; i < kCalls; ++i) {
    loss.EndEvent();
    answers.push_back(TimeOf([&] { return loss.Answer(); }));
    folds.push_back(TimeOf([&] { return loss.Fold(); }));
  }
  const Seconds weight_gradient = Quantile(folds, 0.5);
  std::vector<Seconds> waits;
  const bool timed = Time(
      state,
      [&] {
        const absl::Status status = loss.Answer();
        if (!status.ok()) return status;
        const auto start = std::chrono::steady_clock::now();
        while (std::chrono::steady_clock::now() - start < weight_gradient) {
        }
        waits.push_back(TimeOf([&] { return loss.Fold(); }));
        return status;
      },
      [&] { loss.EndEvent(); });
  if (!timed) return;
  RequireItsWay(state, loss);
  Report(state, Products(3), GemmFlopsPerSecond());  // The client's work too.
  state.counters["answered_ms"] = 1e3 * Quantile(answers, 0.5).count();
  state.counters["weight_gradient_ms"] = 1e3 * weight_gradient.count();
  state.counters["left_ms"] = 1e3 * Quantile(waits, 0.5).count();
  constexpr Seconds kSomeWait(1e-4);
  if (weight_gradient < kSomeWait) return;
  state.counters["hidden_share"] = 1 - Quantile(waits, 0.5) / weight_gradient;
}
BENCHMARK(LossBesideClientWork)->Apply(Ways);

}  // namespace
}  // namespace rowhouse::bench
