/// A head's loss over loopback, through the client library: 1,024 bf16 tokens
/// against 16,384 bf16 rows of 768. The ceiling is bare `sgemm` in this
/// process.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "bench/server/deployment.h"
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

  // Forward and backward, the weight gradient folded.
  absl::Status Compute() {
    const auto loss = head_->Forward(
        {.hidden = std::as_bytes(std::span(hidden_)), .targets = targets_},
        {.event = trainer_->next_event()});
    if (!loss.ok()) return loss.status();
    const absl::Status status =
        (*loss)->Backward(1.0, std::as_writable_bytes(std::span(gradient_)));
    return status.ok() ? head_->FlushWeightGradient() : status;
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

// Three products of tokens and rows; forming one of them twice counts once.
void LinearCrossEntropy(benchmark::State& state) {
  auto& loss = Kept<Loss>();
  const auto tokens = static_cast<double>(TokenCount());
  const auto rows = static_cast<double>(RowCount());
  Measure(
      state, {.flops = 3 * 2 * tokens * rows * kDim, .items = tokens},
      [&] { return loss.Compute(); }, [&] { loss.EndEvent(); });
}
BENCHMARK(LinearCrossEntropy)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
