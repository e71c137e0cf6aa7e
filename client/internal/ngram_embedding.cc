#include "rowhouse/ngram_embedding.h"

#include <utility>

#include "client/internal/ngram_core.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client {

NgramEmbedding::NgramEmbedding(std::unique_ptr<internal::NgramCore> core)
    : core_(std::move(core)) {}

NgramEmbedding::~NgramEmbedding() = default;

absl::StatusOr<std::vector<int64_t>> NgramEmbedding::RowIds(
    Tokens tokens) const {
  return core_->cache().RowIds(tokens);
}

absl::StatusOr<std::vector<int64_t>> NgramEmbedding::WantList(
    std::span<const Tokens> steps) const {
  ROWHOUSE_ASSIGN_OR_RETURN(internal::NgramWant want,
                            core_->cache().WantList(steps));
  return std::move(want.row_ids);
}

int64_t NgramEmbedding::CycleEnd(int64_t step) const {
  while (!core_->options().is_update(step)) ++step;
  return step;
}

absl::Status NgramEmbedding::StartCycle(int64_t first_step,
                                        std::span<const Tokens> steps) {
  return core_->StartCycle(first_step, steps);
}

absl::Status NgramEmbedding::PrefetchNextCycle(std::span<const Tokens> steps) {
  return core_->PrefetchNextCycle(steps);
}

absl::Status NgramEmbedding::Embed(Tokens tokens, std::span<std::byte> out) {
  return core_->Embed(tokens, out);
}

absl::Status NgramEmbedding::AccumulateGradient(
    Tokens tokens, std::span<const std::byte> gradient) {
  return core_->AccumulateGradient(tokens, gradient);
}

absl::StatusOr<int64_t> NgramEmbedding::FinishCycle(
    std::optional<CommitDecision> decision) {
  return core_->FinishCycle(std::move(decision));
}

absl::Status NgramEmbedding::DropCycle() { return core_->DropCycle(); }

absl::Status NgramEmbedding::PullForEvaluation(
    std::span<const Tokens> batches) {
  return core_->PullForEvaluation(batches);
}

absl::Status NgramEmbedding::RestoreAfterEvaluation() {
  return core_->RestoreAfterEvaluation();
}

namespace internal {

absl::StatusOr<std::unique_ptr<NgramEmbedding>> MakeNgramEmbedding(
    Trainer& trainer, const NgramOptions& options,
    std::shared_ptr<kernels::Backend> backend) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::unique_ptr<NgramCache> cache,
      NgramCache::Make(trainer.table(), options, std::move(backend)));
  return std::make_unique<NgramEmbedding>(
      std::make_unique<NgramCore>(trainer, options, std::move(cache)));
}

}  // namespace internal
}  // namespace rowhouse::client
