#include "rowhouse/lm_head.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/head_call.h"
#include "client/internal/head_loss_core.h"
#include "client/internal/head_terms.h"
#include "client/internal/row_selection.h"
#include "client/internal/trainer_core.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client {
namespace internal {
namespace {

absl::Status CheckTargets(std::span<const int64_t> targets, int64_t row_count,
                          int64_t ignore_index) {
  for (size_t t = 0; t < targets.size(); ++t) {
    const int64_t target = targets[t];
    if (target == ignore_index || (target >= 0 && target < row_count)) continue;
    return wire::Error(absl::StatusCode::kOutOfRange,
                       wire::reasons::kRowOutOfTable,
                       absl::StrCat("target ", target, " at position ", t,
                                    ", wanted one in [0, ", row_count, ") or ",
                                    ignore_index, ", the ignored one"),
                       {{"position", std::to_string(t)},
                        {"row_id", std::to_string(target)},
                        {"row_count", std::to_string(row_count)}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HeadHeader> CheckedHeader(const TrainerCore& trainer,
                                         const PlacedBatch& batch,
                                         int64_t event, int64_t ignore_index,
                                         const LossTerms& terms) {
  if (event < 1) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadEvent,
                       absl::StrCat("event ", event, ", wanted at least 1"),
                       {{"event", std::to_string(event)}});
  }
  const TableSpec& spec = trainer.table().spec;
  HeadHeader header = {.table = trainer.table().name,
                       .trainer = trainer.session(),
                       .event = event,
                       .token_count = std::ssize(batch.targets),
                       .hidden_dtype = batch.hidden_dtype,
                       .ignore_index = ignore_index,
                       .dim = spec.dim};
  ROWHOUSE_RETURN_IF_ERROR(internal::CheckBufferSize(
      batch.hidden.size(), header.token_count, header.hidden_row_bytes()));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckTargets(batch.targets, spec.row_count, ignore_index));
  ROWHOUSE_RETURN_IF_ERROR(CheckTerms(terms, spec.row_count));
  AskFor(terms, header);
  return header;
}

}  // namespace internal

HeadLoss::HeadLoss(std::unique_ptr<internal::HeadLossCore> core)
    : core_(std::move(core)) {}

HeadLoss::~HeadLoss() = default;

double HeadLoss::loss() const { return core_->loss(); }
std::span<const float> HeadLoss::token_losses() const {
  return core_->token_losses();
}
double HeadLoss::z_loss() const { return core_->z_loss(); }
std::span<const int64_t> HeadLoss::predicted() const {
  return core_->predicted();
}
int64_t HeadLoss::correct_token_count() const {
  return core_->sums().correct_token_count;
}
int64_t HeadLoss::valid_token_count() const {
  return core_->sums().valid_token_count;
}
double HeadLoss::target_weight_sum() const {
  return core_->sums().target_weight;
}
int32_t HeadLoss::part() const { return core_->part(); }

absl::Status HeadLoss::Backward(double upstream,
                                std::span<std::byte> hidden_gradient,
                                const BackwardOptions& options) {
  return core_->Backward(upstream, hidden_gradient, options);
}

absl::Status HeadLoss::Backward(std::span<const float> upstream,
                                std::span<std::byte> hidden_gradient,
                                const BackwardOptions& options) {
  return core_->Backward(upstream, hidden_gradient, options);
}

LmHead::LmHead(std::shared_ptr<internal::TrainerCore> core)
    : core_(std::move(core)) {}

LmHead::~LmHead() = default;

absl::StatusOr<std::unique_ptr<LmHead>> LmHead::Create(const Trainer& trainer) {
  const TableInfo& table = trainer.table();
  const bool has_head = table.spec.dense.has_value() &&
                        table.spec.dense->max_head_token_count > 0;
  if (!has_head) {
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, wire::reasons::kTableKind,
        absl::StrCat("the ", table.spec.dense.has_value() ? "dense" : "sparse",
                     " table ", table.name,
                     ", wanted a dense one with max_head_token_count above 0"),
        {{"table", table.name}});
  }
  return std::make_unique<LmHead>(trainer.core());
}

absl::StatusOr<std::unique_ptr<HeadLoss>> LmHead::Forward(
    const HeadBatch& batch, const HeadOptions& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::unique_ptr<internal::HeadLossCore> core,
      internal::HeadLossCore::Forward(core_, batch, options));
  return std::make_unique<HeadLoss>(std::move(core));
}

absl::StatusOr<HeadEvaluation> LmHead::Evaluate(
    const HeadBatch& batch, const EvaluateOptions& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(const internal::PlacedBatch placed,
                            internal::PlaceBatch(core_->cluster(), batch));
  ROWHOUSE_ASSIGN_OR_RETURN(
      internal::HeadHeader header,
      internal::CheckedHeader(*core_, placed, options.event,
                              options.ignore_index, options.terms));
  header.purpose = internal::HeadPurpose::kEvaluation;
  internal::HeadCall call(
      core_->cluster(), core_->router().placement(), header,
      {placed.targets, placed.hidden, options.terms.class_weights,
       placed.device},
      internal::ToKernel(options.terms, core_->table().spec.row_count));
  ROWHOUSE_RETURN_IF_ERROR(call.ComputeLosses(core_->Context(options.timeout)));
  const internal::HeadSums& sums = call.sums();
  HeadEvaluation result;
  result.loss_sum = sums.cross_entropy + sums.z_loss;
  result.z_loss_sum = sums.z_loss;
  result.valid_token_count = sums.valid_token_count;
  result.target_weight_sum = sums.target_weight;
  result.correct_token_count = sums.correct_token_count;
  result.predicted = {call.predicted().begin(), call.predicted().end()};
  if (options.token_losses) {
    result.token_losses = {call.losses().begin(), call.losses().end()};
  }
  return result;
}

absl::Status LmHead::FlushWeightGradient(const CallOptions& options) {
  return core_->FlushWeightGradient(options);
}

}  // namespace rowhouse::client
