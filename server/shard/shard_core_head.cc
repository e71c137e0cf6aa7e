// Head calls: statistics, hidden gradients, and parts of weight gradients.

#include <cstdint>
#include <memory>
#include <optional>
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

absl::Status NotDenseError(const ShardSpec& spec) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kTableKind,
      absl::StrCat(spec.table,
                   " is a sparse table; a head call needs a dense one"),
      {{"table", spec.table}});
}

// `passing`: without the calls that are open, which may end, there is room.
absl::Status TokensFullError(const HeadHeader& header, int64_t found,
                             int64_t most, bool passing) {
  return wire::Error(absl::StatusCode::kResourceExhausted,
                     wire::reasons::kTokensFull,
                     absl::StrCat("head part ", header.part, " of rank ",
                                  header.trainer->trainer_rank, " for event ",
                                  header.event, " makes it ", found,
                                  " tokens; max_head_token_count is ", most),
                     {{"limit", "max_head_token_count"},
                      {"value", absl::StrCat(most)},
                      {"found", absl::StrCat(found)}},
                     passing ? std::optional(kRetryDelay) : std::nullopt);
}

}  // namespace

absl::Status ShardCore::CheckHeadHeader(const HeadHeader& header) const {
  if (dense_ == nullptr) return NotDenseError(spec_);
  const bool evaluation = header.purpose == HeadPurpose::kEvaluation;
  if (header.trainer.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(*header.trainer));
  } else if (!evaluation) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kMalformed,
                       "the head call names no trainer; only an evaluation "
                       "needs none");
  }
  if (header.event < 1) return BadEventError("event", header.event, 1);
  const int64_t most = spec_.dense->max_head_token_count;
  if (header.token_count >= 0 && header.token_count <= most) {
    return absl::OkStatus();
  }
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadCount,
      absl::StrCat("token_count is ", header.token_count,
                   "; it must be in [0, ", most, "] (max_head_token_count)"),
      {{"token_count", absl::StrCat(header.token_count)},
       {"value", absl::StrCat(most)}});
}

absl::Status ShardCore::CheckHeadEvent(int64_t event) const {
  if (event <= events_.applied()) {
    return EventPastError("the head call is for event", event,
                          events_.applied());
  }
  if (events_.AgeOf(event) != Events::Age::kAhead) return absl::OkStatus();
  return EventAheadError(event, events_.applied(),
                         events_.applied() + Events::kOpen);
}

// Whether the call will stage a part: a training call whose part is not known.
absl::StatusOr<bool> ShardCore::PlanHead(const HeadHeader& header) const {
  if (header.purpose != HeadPurpose::kTraining) return false;
  if (header.part < 0) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadPart,
        absl::StrCat("part is ", header.part, "; it must be at least 0"),
        {{"part", absl::StrCat(header.part)}});
  }
  const PartName name{header.event, header.trainer->trainer_rank, header.part};
  if (ledger_.Knows(name)) return false;
  ROWHOUSE_RETURN_IF_ERROR(events_.CheckPart(name));
  if (header.part >= spec_.max_part_count) {
    return wire::Error(
        absl::StatusCode::kResourceExhausted, wire::reasons::kPartsFull,
        absl::StrCat("the head call is part ", header.part, " of rank ",
                     name.trainer_rank, "; max_part_count is ",
                     spec_.max_part_count),
        {{"limit", "max_part_count"},
         {"value", absl::StrCat(spec_.max_part_count)}});
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckTokens(header));
  return true;
}

absl::Status ShardCore::CheckTokens(const HeadHeader& header) const {
  const int32_t rank = header.trainer->trainer_rank;
  const Contribution* contribution = events_.Find(header.event, rank);
  const int64_t kept =
      header.token_count +
      (contribution == nullptr ? 0 : contribution->token_count);
  const int64_t found =
      kept + head_calls_.StagingTokenCount(header.event, rank, header.part);
  const int64_t most = spec_.dense->max_head_token_count;
  return found <= most
             ? absl::OkStatus()
             : TokensFullError(header, found, most, /*passing=*/kept <= most);
}

absl::StatusOr<std::unique_ptr<HeadLanding>> ShardCore::OpenHead(
    const HeadHeader& header) {
  ROWHOUSE_RETURN_IF_ERROR(CheckHeadHeader(header));
  ROWHOUSE_RETURN_IF_ERROR(CheckHeadEvent(header.event));
  ROWHOUSE_ASSIGN_OR_RETURN(const bool staging, PlanHead(header));
  if (!staging) {
    ROWHOUSE_RETURN_IF_ERROR(
        head_calls_.MakeRoom(header.trainer, events_.applied()));
  } else {
    // Before the new call takes its memory.
    head_calls_.Supersede(
        {header.event, header.trainer->trainer_rank, header.part});
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::unique_ptr<HeadLanding> head,
      HeadLanding::Create({spec_, range_, backend_, class_weights_}, header));
  HeadCalls::Place place;
  place.trainer = header.trainer;
  place.event = header.event;
  place.evaluation = header.purpose == HeadPurpose::kEvaluation;
  place.token_count = header.token_count;
  place.memory = head->memory();
  if (staging) {
    head->set_staging();
    place.staging = head->name();
  }
  head->set_place(head_calls_.Add(std::move(place)));
  return head;
}

void ShardCore::ComputeHeadStatistics(HeadLanding& head,
                                      std::shared_ptr<Call> call,
                                      Done<int64_t> done) {
  absl::Status complete = head.CheckInputs();
  if (!complete.ok()) return done(std::move(complete));
  const int64_t event = head.header().event;
  ParkedCall parked;
  parked.applied_event = event - 1;
  parked.until = WaitLimit(*call);
  parked.call = std::move(call);
  parked.trainer = head.header().trainer;
  parked.resume = [this, &head, event,
                   done = std::move(done)](absl::Status waited) mutable {
    if (waited.ok()) waited = head.CheckInputs();  // It may be revoked.
    if (waited.ok()) waited = CheckHeadEvent(event);
    if (waited.ok()) waited = dense_->ComputeHeadStatistics(head);
    if (!waited.ok()) return done(std::move(waited));
    head_calls_.SetComputed(head.place());
    done(events_.applied());
  };
  WaitFor(std::move(parked));
}

// The first answer to a part that is known; nothing for one to be staged, or
// for a call that stages none.
absl::StatusOr<std::optional<PartReceipt>> ShardCore::JudgeHead(
    const HeadLanding& head) const {
  if (head.header().purpose != HeadPurpose::kTraining) return std::nullopt;
  const PartName name = head.name();
  if (ledger_.Knows(name)) return ledger_.Answer(name, head.content());
  if (!head.staging()) return DroppedPartError(name);
  ROWHOUSE_RETURN_IF_ERROR(events_.CheckPart(name));
  return std::nullopt;
}

absl::StatusOr<PartReceipt> ShardCore::FinishHead(HeadLanding& head) {
  const HeadHeader& header = head.header();
  if (header.trainer.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(sessions_.Check(*header.trainer));
  }
  ROWHOUSE_RETURN_IF_ERROR(head.CheckMerged());
  ROWHOUSE_RETURN_IF_ERROR(CheckHeadEvent(header.event));
  if (header.event != events_.applied() + 1) {
    return EventPendingError(events_.applied());
  }
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<PartReceipt> known, JudgeHead(head));
  ROWHOUSE_RETURN_IF_ERROR(dense_->ComputeHiddenGradient(head));
  if (known.has_value()) return *known;
  const PartReceipt receipt{events_.applied(), header.token_count, false};
  if (header.purpose != HeadPurpose::kTraining) return receipt;
  ledger_.Record(head.name(), head.content(), receipt);
  events_.Stage(head.name(), header.trainer->session,
                StagedPart(head.operands(), head.class_weights()));
  head_calls_.SetStaged(head.place());
  return receipt;
}

}  // namespace rowhouse::server
