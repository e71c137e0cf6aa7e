// How a part lands, counts once, and is staged.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

PartName NameOf(const PartHeader& header) {
  return {header.event, header.trainer.trainer_rank, header.part};
}

absl::Status CheckHeader(const PartHeader& header) {
  if (header.event < 1) return BadEventError("event", header.event, 1);
  if (header.part < 0) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadPart,
        absl::StrCat("part is ", header.part, "; it must be at least 0"),
        {{"part", absl::StrCat(header.part)}});
  }
  if (header.row_count < 0) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadCount,
                       absl::StrCat("row_count is ", header.row_count,
                                    "; it must be at least 0"),
                       {{"row_count", absl::StrCat(header.row_count)}});
  }
  return absl::OkStatus();
}

absl::Status LimitError(std::string_view reason, const char* limit,
                        int64_t value, int64_t found,
                        const PartHeader& header) {
  return wire::Error(
      absl::StatusCode::kResourceExhausted, reason,
      absl::StrCat("part ", header.part, " of rank ",
                   header.trainer.trainer_rank, " for event ", header.event,
                   " makes it ", found, "; ", limit, " is ", value),
      {{"limit", limit},
       {"value", absl::StrCat(value)},
       {"found", absl::StrCat(found)}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Landing>> ShardCore::BeginPart(
    PartHeader header) {
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(header.trainer));
  ROWHOUSE_RETURN_IF_ERROR(CheckHeader(header));
  ROWHOUSE_ASSIGN_OR_RETURN(LandingPlan plan, PlanLanding(std::move(header)));
  const Landings::Ticket ticket = plan.ticket;
  absl::StatusOr<std::unique_ptr<Landing>> landing =
      Landing::Create({spec_, range_, backend_}, std::move(plan));
  if (!landing.ok()) landings_.End(*ticket);
  return landing;
}

// The ledger is asked before handles and seals: a known part is answered even
// when its handles have expired or its contribution is sealed or applied.
absl::StatusOr<LandingPlan> ShardCore::PlanLanding(PartHeader header) {
  LandingPlan plan;
  plan.header = std::move(header);
  const PartName name = NameOf(plan.header);
  const Events::Age age = events_.AgeOf(name.event);
  if (age == Events::Age::kForgotten) {
    plan.mode = LandingPlan::Mode::kIgnore;
    ROWHOUSE_ASSIGN_OR_RETURN(plan.ticket, landings_.BeginRepeat(name));
    return plan;
  }
  if (age == Events::Age::kAhead) {
    return EventAheadError(name.event, events_.applied(),
                           events_.applied() + Events::kOpen);
  }
  if (ledger_.Knows(name)) {
    plan.mode = LandingPlan::Mode::kCompare;
    if (!ledger_.HasHandles(name, plan.header.handles)) {
      ROWHOUSE_RETURN_IF_ERROR(ResolveHandles(plan));
    }
    ROWHOUSE_ASSIGN_OR_RETURN(plan.ticket, landings_.BeginRepeat(name));
    return plan;
  }
  if (age == Events::Age::kApplied) {
    return EventPastError("the part is new and for event", name.event,
                          events_.applied());
  }
  plan.mode = LandingPlan::Mode::kStage;
  ROWHOUSE_RETURN_IF_ERROR(CheckRoom(plan.header));
  ROWHOUSE_RETURN_IF_ERROR(ResolveHandles(plan));
  plan.ticket = landings_.Begin(name, plan.header.row_count);
  return plan;
}

absl::Status ShardCore::CheckRoom(const PartHeader& header) const {
  const PartName name = NameOf(header);
  ROWHOUSE_RETURN_IF_ERROR(events_.CheckPart(name));
  if (header.part >= spec_.max_part_count) {
    return LimitError(wire::reasons::kPartsFull, "max_part_count",
                      spec_.max_part_count, int64_t{header.part} + 1, header);
  }
  const Contribution* contribution =
      events_.Find(name.event, name.trainer_rank);
  const int64_t used =
      landings_.RowCount(name.event, name.trainer_rank, name.part) +
      (contribution == nullptr ? 0 : contribution->row_count);
  // A part that exceeds the limit alone may be of any size: no sum of both.
  if (header.row_count > spec_.max_contribution_row_count - used) {
    return LimitError(wire::reasons::kContributionFull,
                      "max_contribution_row_count",
                      spec_.max_contribution_row_count,
                      header.row_count > spec_.max_contribution_row_count
                          ? header.row_count
                          : used + header.row_count,
                      header);
  }
  return absl::OkStatus();
}

absl::Status ShardCore::ResolveHandles(LandingPlan& plan) const {
  int64_t row_count = 0;
  for (const int64_t handle : plan.header.handles) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        SharedSlots slots,
        handles_.Find(plan.header.trainer.trainer_rank, handle));
    row_count += static_cast<int64_t>(slots->size());
    plan.handle_slots.push_back(std::move(slots));
  }
  if (!plan.header.handles.empty() && row_count != plan.header.row_count) {
    return BadCountError("rows of the part", plan.header.row_count, row_count);
  }
  return absl::OkStatus();
}

absl::StatusOr<FinishedPart> ShardCore::FinishPart(
    Landing& landing, std::optional<int32_t> part_count,
    std::optional<EventCommit> commit) {
  const PartHeader& header = landing.plan().header;
  ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(header.trainer));
  if (commit.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(CheckCommitter(header.trainer));
  }
  ROWHOUSE_RETURN_IF_ERROR(landing.Complete());
  ROWHOUSE_ASSIGN_OR_RETURN(const Verdict verdict, JudgePart(landing));
  std::optional<TrainerSession> sealing;
  if (part_count.has_value()) {
    const std::optional<int32_t> arriving =
        verdict.stage ? std::optional(header.part) : std::nullopt;
    ROWHOUSE_RETURN_IF_ERROR(
        events_.CheckSeal(header.trainer, header.event, *part_count, arriving));
    sealing = header.trainer;
  }
  bool recorded = true;
  if (commit.has_value()) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        recorded,
        events_.CheckCommit(header.event, *commit, UpdateRule(spec_), sealing));
  }
  // Nothing is refused from here on.
  if (verdict.stage) StagePart(landing, verdict.receipt);
  EndLanding(*landing.plan().ticket);
  if (part_count.has_value()) SealNow(header.trainer, header.event);
  FinishedPart finished{verdict.receipt, std::nullopt};
  if (!recorded) finished.commit = std::move(commit);
  return finished;
}

absl::StatusOr<ShardCore::Verdict> ShardCore::JudgePart(
    const Landing& landing) const {
  const PartName name = landing.name();
  const int64_t row_count = landing.plan().header.row_count;
  const Events::Age age = events_.AgeOf(name.event);
  if (age == Events::Age::kForgotten) {
    return Verdict{{events_.applied(), row_count, true}, false};
  }
  if (ledger_.Knows(name)) {
    ROWHOUSE_ASSIGN_OR_RETURN(const PartReceipt receipt,
                              ledger_.Answer(name, landing.content()));
    return Verdict{receipt, false};
  }
  if (age == Events::Age::kApplied) {
    return EventPastError("the part is new and for event", name.event,
                          events_.applied());
  }
  if (landing.plan().mode != LandingPlan::Mode::kStage) {
    return DroppedPartError(name);
  }
  ROWHOUSE_RETURN_IF_ERROR(landing.plan().ticket->Check());
  ROWHOUSE_RETURN_IF_ERROR(events_.CheckPart(name));
  return Verdict{{events_.applied(), row_count, false}, true};
}

void ShardCore::StagePart(Landing& landing, const PartReceipt& receipt) {
  const PartName name = landing.name();
  ledger_.Record(name, landing.content(), receipt);
  events_.Stage(name, landing.plan().header.trainer.session,
                landing.TakeStaged());
}

}  // namespace rowhouse::server
