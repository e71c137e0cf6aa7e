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
absl::StatusOr<std::vector<int64_t>> NgramCore::WantList(
    std::span<const Tokens> steps, int64_t event) const {
  SpanTimer timer(options_.observer, Stage::kWantList, event);
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<int64_t> want, cache_->WantList(steps));
  timer.End(std::ssize(want));
  return want;
}

absl::Status NgramCore::PullInto(std::span<const int64_t> want, int64_t event,
                                 bool training, RowSet& rows) {
  SpanTimer timer(options_.observer, Stage::kPullWait, event + 1);
  ROWHOUSE_ASSIGN_OR_RETURN(rows,
                            trainer_.Pull(want, cache_->Rows(std::ssize(want)),
                                          {.timeout = options_.timeout,
                                           .exact_event = event,
                                           .training = training}));
  timer.End(rows.row_count());
  return absl::OkStatus();
}

// Whether these steps are those that were prefetched, whose want list is known.
bool NgramCore::IsNext(std::span<const Tokens> steps) const {
  return next_.has_value() &&
         std::equal(steps.begin(), steps.end(), next_->tokens.begin(),
                    next_->tokens.end(), [](const Tokens& a, const Tokens& b) {
                      return std::equal(a.begin(), a.end(), b.begin(), b.end());
                    });
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
  if (IsNext(steps)) {
    cycle.want = next_->want;
  } else {
    ROWHOUSE_ASSIGN_OR_RETURN(cycle.want, WantList(steps, cycle.event));
  }
  cycle.last_step = first_step + std::ssize(steps) - 1;
  cycle.step_count = std::ssize(steps);
  if (next_.has_value()) {
    if (next_->want != cycle.want) {
      return OutOfOrder("StartCycle with other steps than were prefetched");
    }
    ROWHOUSE_RETURN_IF_ERROR(LandNext());
    if (contents_ != Contents::kLive) {
      return OutOfOrder(
          "StartCycle while the cache holds an evaluation, wanted "
          "RestoreAfterEvaluation first");
    }
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
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<int64_t> want,
                            WantList(steps, cycle_->event + 1));
  PendingPull pull = trainer_.PullAsync(want, cache_->Rows(std::ssize(want)),
                                        {.timeout = options_.timeout,
                                         .exact_event = cycle_->event,
                                         .training = true});
  next_.emplace(NextCycle{{}, std::move(want), std::move(pull), std::nullopt});
  for (const Tokens& tokens : steps) {
    next_->tokens.emplace_back(tokens.begin(), tokens.end());
  }
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
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<int64_t> row_ids,
                            cache_->RowIds(tokens));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::vector<int64_t> slots,
      FindSlots(
          contents_ == Contents::kEvaluation ? evaluation_want_ : cycle_->want,
          row_ids));
  ROWHOUSE_RETURN_IF_ERROR(cache_->Embed(tokens, slots, out));
  timer.End(std::ssize(tokens));
  return absl::OkStatus();
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
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<int64_t> row_ids,
                            cache_->RowIds(tokens));
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<int64_t> slots,
                            FindSlots(cycle_->want, row_ids));
  cycle_->held.push_back({{tokens.begin(), tokens.end()},
                          std::move(slots),
                          {gradient.begin(), gradient.end()}});
  timer.End(std::ssize(tokens));
  return absl::OkStatus();
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

absl::StatusOr<std::vector<std::byte>> NgramCore::CycleGradient() const {
  SpanTimer timer(options_.observer, Stage::kSum, cycle_->event);
  std::vector<kernels::NgramStep> steps;
  for (const HeldStep& held : cycle_->held) {
    steps.push_back({held.tokens, held.slots, held.gradient.data()});
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::vector<std::byte> gradient,
      cache_->SumGradients(steps, std::ssize(cycle_->want)));
  timer.End(std::ssize(cycle_->want));
  return gradient;
}

absl::StatusOr<int64_t> NgramCore::FinishCycle(
    std::optional<CommitDecision> decision) {
  ROWHOUSE_RETURN_IF_ERROR(CheckFinish(decision.has_value()));
  const int64_t event = cycle_->event;
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<std::byte> gradient,
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
  cycle_.reset();
  return event;
}

absl::Status NgramCore::DropCycle() {
  if (!cycle_.has_value()) return OutOfOrder("DropCycle outside of a cycle");
  if (cycle_->finishing) {
    ROWHOUSE_RETURN_IF_ERROR(
        trainer_.Discard(cycle_->event, {.timeout = options_.timeout}));
  }
  next_.reset();
  cycle_.reset();
  contents_ = Contents::kNothing;
  return absl::OkStatus();
}

absl::Status NgramCore::PullForEvaluation(std::span<const Tokens> batches) {
  if (cycle_.has_value() && cycle_->finishing) {
    return OutOfOrder(
        "PullForEvaluation while FinishCycle is under way, wanted it repeated "
        "first");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<int64_t> want,
                            cache_->WantList(batches));
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
