// The order of an n-gram embedding's calls.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/ngram_core.h"
#include "client/internal/span_timer.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status OutOfOrder(const std::string& message) {
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kOutOfOrder, message);
}

absl::Status CheckBytes(size_t found, size_t wanted) {
  if (found == wanted) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadShape,
      absl::StrCat("a buffer of ", found, " bytes, wanted ", wanted),
      {{"found_bytes", std::to_string(found)},
       {"wanted_bytes", std::to_string(wanted)}});
}

}  // namespace

absl::Status NgramCore::CheckSteps(int64_t first_step,
                                   int64_t step_count) const {
  if (step_count < 1) {
    return absl::InvalidArgumentError("a cycle of no steps, wanted 1 or more");
  }
  for (int64_t step = first_step; step < first_step + step_count - 1; ++step) {
    if (!options_.is_update(step)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a cycle of ", step_count, " steps from step ", first_step,
        ", wanted one that ends with step ", step, ", which an event follows"));
  }
  return absl::OkStatus();
}

// Of what ends with `event`.
absl::StatusOr<NgramWant> NgramCore::WantList(std::span<const Tokens> steps,
                                              int64_t event) {
  SpanTimer timer(options_.observer, Stage::kWantList, event);
  ROWHOUSE_ASSIGN_OR_RETURN(NgramWant want, cache_->WantList(steps));
  timer.End(std::ssize(want.row_ids));
  return want;
}

absl::Status NgramCore::PullInto(const NgramWant& want, int64_t event,
                                 bool training, RowSet& rows) {
  SpanTimer timer(options_.observer, Stage::kPullWait, event + 1);
  ROWHOUSE_ASSIGN_OR_RETURN(const RowList list,
                            trainer_.PrepareRows(want.row_ids));
  ROWHOUSE_ASSIGN_OR_RETURN(rows,
                            trainer_.Pull(list, cache_->Rows(list.row_count()),
                                          {.timeout = options_.timeout,
                                           .exact_event = event,
                                           .training = training}));
  timer.End(rows.row_count());
  return absl::OkStatus();
}

// Whether these steps are those that were prefetched, whose want list is there.
absl::StatusOr<bool> NgramCore::IsNext(std::span<const Tokens> steps) const {
  if (!next_.has_value()) return false;
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<std::vector<int32_t>> tokens,
                            cache_->HostTokens(steps));
  return tokens == next_->tokens;
}

// Waits until what was prefetched is in the cache.
absl::Status NgramCore::LandNext() {
  if (!next_.has_value() || next_->rows.has_value()) return absl::OkStatus();
  SpanTimer timer(options_.observer, Stage::kPullWait, trainer_.next_event());
  absl::StatusOr<RowSet> rows = next_->pull.Wait();
  if (!rows.ok()) {
    next_.reset();  // `StartCycle` pulls anew.
    return rows.status();
  }
  timer.End(rows->row_count());
  next_->rows = *std::move(rows);
  contents_ = Contents::kLive;
  return absl::OkStatus();
}

absl::Status NgramCore::StartCycle(int64_t first_step,
                                   std::span<const Tokens> steps) {
  if (cycle_.has_value()) {
    return OutOfOrder("StartCycle in a cycle, wanted FinishCycle first");
  }
  if (trainer_.rank() == 0 && trainer_.next_commit() < trainer_.next_event()) {
    return OutOfOrder(absl::StrCat("StartCycle while event ",
                                   trainer_.next_commit(),
                                   ", which a predecessor sealed, waits for "
                                   "its decision, wanted Trainer::Commit"));
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckSteps(first_step, std::ssize(steps)));
  Cycle cycle;
  cycle.event = trainer_.next_event();
  ROWHOUSE_ASSIGN_OR_RETURN(const bool known, IsNext(steps));
  if (!known) {
    ROWHOUSE_ASSIGN_OR_RETURN(cycle.want, WantList(steps, cycle.event));
  }
  cycle.last_step = first_step + std::ssize(steps) - 1;
  cycle.step_count = std::ssize(steps);
  if (next_.has_value()) {
    if (!known && next_->want.row_ids != cycle.want.row_ids) {
      return OutOfOrder("StartCycle with other steps than were prefetched");
    }
    ROWHOUSE_RETURN_IF_ERROR(LandNext());
    if (contents_ != Contents::kLive) {
      return OutOfOrder(
          "StartCycle while the cache holds an evaluation, wanted "
          "RestoreAfterEvaluation first");
    }
    if (known) cycle.want = std::move(next_->want);
    cycle.rows = *next_->rows;
    next_.reset();
  } else {
    contents_ = Contents::kNothing;
    ROWHOUSE_RETURN_IF_ERROR(
        PullInto(cycle.want, cycle.event - 1, true, cycle.rows));
    contents_ = Contents::kLive;
  }
  cycle_ = std::move(cycle);
  return absl::OkStatus();
}

absl::Status NgramCore::PrefetchNextCycle(std::span<const Tokens> steps) {
  if (!cycle_.has_value() || cycle_->finishing) {
    return OutOfOrder("PrefetchNextCycle outside of a cycle");
  }
  if (next_.has_value()) return OutOfOrder("PrefetchNextCycle a second time");
  ROWHOUSE_RETURN_IF_ERROR(
      CheckSteps(cycle_->last_step + 1, std::ssize(steps)));
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<std::vector<int32_t>> tokens,
                            cache_->HostTokens(steps));
  ROWHOUSE_ASSIGN_OR_RETURN(NgramWant want, WantList(steps, cycle_->event + 1));
  // Split, and where the cache is, before its event: then nothing is between
  // that and the rows.
  ROWHOUSE_ASSIGN_OR_RETURN(const RowList list,
                            trainer_.PrepareRows(want.row_ids));
  PendingPull pull = trainer_.PullAsync(list, cache_->Rows(list.row_count()),
                                        {.timeout = options_.timeout,
                                         .exact_event = cycle_->event,
                                         .training = true});
  next_.emplace(NextCycle{std::move(tokens), std::move(want), std::move(pull),
                          std::nullopt});
  return absl::OkStatus();
}

absl::Status NgramCore::CheckEmbed() const {
  if (contents_ == Contents::kEvaluation) return absl::OkStatus();
  if (contents_ == Contents::kLive && cycle_.has_value() &&
      !cycle_->finishing) {
    return absl::OkStatus();
  }
  return OutOfOrder(
      "the cache holds neither a cycle nor an evaluation, wanted StartCycle or "
      "PullForEvaluation first");
}

absl::Status NgramCore::Embed(Tokens tokens, std::span<std::byte> out) {
  ROWHOUSE_RETURN_IF_ERROR(CheckEmbed());
  SpanTimer timer(options_.observer, Stage::kEmbed, trainer_.next_event());
  ROWHOUSE_RETURN_IF_ERROR(
      CheckBytes(out.size(), tokens.size() * cache_->row_bytes()));
  const bool evaluating = contents_ == Contents::kEvaluation;
  ROWHOUSE_RETURN_IF_ERROR(cache_->Locate(
      evaluating ? evaluation_want_ : cycle_->want, tokens, embedding_));
  ROWHOUSE_RETURN_IF_ERROR(cache_->Embed(embedding_, out));
  timer.End(std::ssize(tokens));
  return absl::OkStatus();
}

NgramCore::HeldStep NgramCore::TakeStep() {
  HeldStep step;
  if (spare_.empty()) return step;
  step = std::move(spare_.back());
  spare_.pop_back();
  return step;
}

void NgramCore::EndCycle() {
  for (HeldStep& held : cycle_->held) spare_.push_back(std::move(held));
  cycle_.reset();
}

absl::Status NgramCore::AccumulateGradient(
    Tokens tokens, std::span<const std::byte> gradient) {
  if (!cycle_.has_value() || cycle_->finishing ||
      contents_ != Contents::kLive) {
    return OutOfOrder(
        "AccumulateGradient while the cache holds no cycle, wanted StartCycle "
        "or RestoreAfterEvaluation first");
  }
  if (std::ssize(cycle_->held) == cycle_->step_count) {
    return OutOfOrder(absl::StrCat("AccumulateGradient after all ",
                                   cycle_->step_count,
                                   " steps, wanted FinishCycle"));
  }
  SpanTimer timer(options_.observer, Stage::kAccumulate, cycle_->event);
  ROWHOUSE_RETURN_IF_ERROR(CheckBytes(
      gradient.size(), tokens.size() * cache_->gradient_row_bytes()));
  HeldStep step = TakeStep();
  absl::Status held = cache_->Locate(cycle_->want, tokens, step.places);
  if (held.ok()) held = cache_->Hold(gradient, step.gradient);
  (held.ok() ? cycle_->held : spare_).push_back(std::move(step));
  if (held.ok()) timer.End(std::ssize(tokens));
  return held;
}

absl::Status NgramCore::CheckFinish(bool has_decision) const {
  if (!cycle_.has_value()) {
    return OutOfOrder("FinishCycle outside of a cycle");
  }
  if (cycle_->held.empty()) {
    return OutOfOrder("FinishCycle before any step has handed in a gradient");
  }
  if (!options_.is_update(cycle_->last_step)) {
    return OutOfOrder(absl::StrCat("FinishCycle after step ", cycle_->last_step,
                                   ", which no event follows, wanted "
                                   "DropCycle"));
  }
  if (has_decision == (trainer_.rank() == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      has_decision ? "a decision of rank " : "no decision of rank ",
      trainer_.rank(), ", wanted one of rank 0 alone"));
}

absl::StatusOr<std::span<const std::byte>> NgramCore::CycleGradient() {
  SpanTimer timer(options_.observer, Stage::kSum, cycle_->event);
  std::vector<kernels::NgramStep> steps;
  for (const HeldStep& held : cycle_->held) {
    steps.push_back({held.places.tokens.span(), held.places.slots.span(),
                     held.gradient.data()});
  }
  const int64_t row_count = std::ssize(cycle_->want.row_ids);
  ROWHOUSE_ASSIGN_OR_RETURN(const std::span<const std::byte> gradient,
                            cache_->SumGradients(steps, row_count));
  timer.End(row_count);
  return gradient;
}

absl::StatusOr<int64_t> NgramCore::FinishCycle(
    std::optional<CommitDecision> decision) {
  ROWHOUSE_RETURN_IF_ERROR(CheckFinish(decision.has_value()));
  const int64_t event = cycle_->event;
  ROWHOUSE_ASSIGN_OR_RETURN(const std::span<const std::byte> gradient,
                            CycleGradient());
  cycle_->finishing = true;
  contents_ = Contents::kNothing;  // The next rows may land from now on.
  // Under its own number a repeat is known even after the seal.
  ROWHOUSE_RETURN_IF_ERROR(
      trainer_
          .Push(event, cycle_->rows, gradient,
                {.timeout = options_.timeout, .part = 0, .seal = true})
          .status());
  if (decision.has_value() && trainer_.next_commit() <= event) {
    ROWHOUSE_RETURN_IF_ERROR(trainer_.Commit(event, *std::move(decision)));
  }
  EndCycle();
  return event;
}

absl::Status NgramCore::DropCycle() {
  if (!cycle_.has_value()) return OutOfOrder("DropCycle outside of a cycle");
  if (cycle_->finishing) {
    ROWHOUSE_RETURN_IF_ERROR(
        trainer_.Discard(cycle_->event, {.timeout = options_.timeout}));
  }
  next_.reset();
  EndCycle();
  contents_ = Contents::kNothing;
  return absl::OkStatus();
}

absl::Status NgramCore::PullForEvaluation(std::span<const Tokens> batches) {
  if (cycle_.has_value() && cycle_->finishing) {
    return OutOfOrder(
        "PullForEvaluation while FinishCycle is under way, wanted it repeated "
        "first");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(NgramWant want, cache_->WantList(batches));
  // Between cycles, what was prefetched may land at any time.
  if (!cycle_.has_value()) ROWHOUSE_RETURN_IF_ERROR(LandNext());
  contents_ = Contents::kDisturbed;
  RowSet rows;
  ROWHOUSE_RETURN_IF_ERROR(
      PullInto(want, trainer_.next_event() - 1, false, rows));
  evaluation_want_ = std::move(want);
  contents_ = Contents::kEvaluation;
  return absl::OkStatus();
}

absl::Status NgramCore::RestoreAfterEvaluation() {
  if (contents_ != Contents::kEvaluation && contents_ != Contents::kDisturbed) {
    return OutOfOrder("RestoreAfterEvaluation without an evaluation");
  }
  const RowSet* rows = nullptr;
  if (cycle_.has_value()) {
    rows = &cycle_->rows;
  } else if (next_.has_value()) {
    rows = &*next_->rows;
  }
  if (rows == nullptr) {
    contents_ = Contents::kNothing;
    return absl::OkStatus();
  }
  contents_ = Contents::kDisturbed;
  ROWHOUSE_RETURN_IF_ERROR(trainer_.Repull(
      *rows, cache_->Rows(rows->row_count()), {.timeout = options_.timeout}));
  contents_ = Contents::kLive;
  return absl::OkStatus();
}

}  // namespace rowhouse::client::internal
