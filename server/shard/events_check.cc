// Which seals and commits are let pass.

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/event_commit.h"
#include "server/shard/events.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

// Row state holds event numbers as int32.
constexpr int64_t kLastEvent = std::numeric_limits<int32_t>::max();

absl::Status PartFault(absl::StatusCode code, std::string_view reason,
                       int32_t part, const char* what, int32_t part_count) {
  return wire::Error(
      code, reason, absl::StrCat("part ", part, what, part_count, " parts"),
      {{"part", absl::StrCat(part)}, {"part_count", absl::StrCat(part_count)}});
}

absl::Status NotSealedError(int64_t event, int32_t trainer_rank) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kNotSealed,
      absl::StrCat("rank ", trainer_rank, " has not sealed event ", event),
      {{"event", absl::StrCat(event)},
       {"trainer_rank", absl::StrCat(trainer_rank)}});
}

absl::Status SessionCountError(int64_t event, int64_t session_count,
                               int32_t trainer_count) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadCommit,
      absl::StrCat("the commit names ", session_count, " sessions; event ",
                   event, " has ", trainer_count, " trainers"),
      {{"found", absl::StrCat(session_count)},
       {"wanted", absl::StrCat(trainer_count)}});
}

}  // namespace

absl::Status Events::CheckSeal(const TrainerSession& trainer, int64_t event,
                               int32_t part_count,
                               std::optional<int32_t> arriving) const {
  if (event < 1) return BadEventError("event", event, 1);
  if (part_count < 0 || part_count > max_part_count_) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadPart,
        absl::StrCat("the part count of the seal is ", part_count,
                     "; it must be in [0, ", max_part_count_, "]"),
        {{"part_count", absl::StrCat(part_count)}});
  }
  switch (AgeOf(event)) {
    case Age::kForgotten:
      return absl::OkStatus();
    case Age::kApplied:
      return CheckSealApplied(trainer, event, part_count);
    case Age::kAhead:
      return EventAheadError(event, applied_, applied_ + kOpen);
    case Age::kOpen:
      break;
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckRank(event, trainer.trainer_rank));
  const Contribution* contribution = Find(event, trainer.trainer_rank);
  if (contribution == nullptr || !contribution->sealed) {
    return CheckPartsComplete(contribution, part_count, arriving);
  }
  const auto sealed_count = static_cast<int32_t>(contribution->parts.size());
  if (contribution->session == trainer.session && sealed_count == part_count) {
    return absl::OkStatus();
  }
  return ContributionSealedError(event, trainer.trainer_rank,
                                 contribution->session, sealed_count);
}

absl::Status Events::CheckSealApplied(const TrainerSession& trainer,
                                      int64_t event, int32_t part_count) const {
  for (const ContributionState& sealed : FindApplied(event)->contributions) {
    if (sealed.trainer_rank != trainer.trainer_rank) continue;
    if (sealed.session == trainer.session && sealed.part_count == part_count) {
      return absl::OkStatus();
    }
    return ContributionSealedError(event, trainer.trainer_rank, sealed.session,
                                   sealed.part_count);
  }
  return BadRankError(trainer.trainer_rank, trainer_counts_.At(event));
}

absl::Status Events::CheckPartsComplete(const Contribution* contribution,
                                        int32_t part_count,
                                        std::optional<int32_t> arriving) const {
  const auto staged = [&](int32_t part) {
    return part == arriving ||
           (contribution != nullptr && contribution->parts.contains(part));
  };
  for (int32_t part = 0; part < part_count; ++part) {
    if (!staged(part)) {
      return PartFault(absl::StatusCode::kFailedPrecondition,
                       wire::reasons::kPartsMissing, part,
                       " has not arrived; the seal names ", part_count);
    }
  }
  int32_t last = arriving.value_or(-1);
  if (contribution != nullptr && !contribution->parts.empty()) {
    last = std::max(last, contribution->parts.rbegin()->first);
  }
  if (last >= part_count) {
    return PartFault(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kBadCount, last,
                     " is staged; the seal names only ", part_count);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Events::CheckCommit(
    int64_t event, const EventCommit& commit, const UpdateRule& rule,
    std::optional<TrainerSession> sealing) const {
  if (event < 1) return BadEventError("event", event, 1);
  switch (AgeOf(event)) {
    case Age::kForgotten:
      return true;
    case Age::kApplied:
      if (SameCommit(FindApplied(event)->state.commit, commit)) return true;
      return CommitDiffersError(event);
    case Age::kAhead:
    case Age::kOpen:
      break;
  }
  if (event > applied_ + 1) {
    return EventAheadError(event, applied_, applied_ + 1);
  }
  if (event > kLastEvent) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadEvent,
                       absl::StrCat("event is ", event,
                                    "; a table ends with event ", kLastEvent),
                       {{"event", absl::StrCat(event)}});
  }
  const int32_t trainer_count = trainer_counts_.At(event);
  const auto session_count = static_cast<int64_t>(commit.sessions.size());
  if (session_count != trainer_count) {
    return SessionCountError(event, session_count, trainer_count);
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckUpdate(commit, rule, trainer_count));
  ROWHOUSE_RETURN_IF_ERROR(CheckSessions(event, commit, sealing));
  return false;
}

absl::Status Events::CheckAllSealed(int64_t event) const {
  const std::optional<int32_t> unsealed = FirstUnsealed(event, std::nullopt);
  return unsealed.has_value() ? NotSealedError(event, *unsealed)
                              : absl::OkStatus();
}

absl::Status Events::CheckSessions(
    int64_t event, const EventCommit& commit,
    std::optional<TrainerSession> sealing) const {
  const std::optional<int32_t> unsealed = FirstUnsealed(event, sealing);
  if (unsealed.has_value()) return NotSealedError(event, *unsealed);
  for (size_t i = 0; i < commit.sessions.size(); ++i) {
    const auto rank = static_cast<int32_t>(i);
    // A seal that is there already has been checked to be the same.
    const Contribution* contribution = Find(event, rank);
    const bool sealed = contribution != nullptr && contribution->sealed;
    const int64_t session = sealed ? contribution->session : sealing->session;
    if (session == commit.sessions[i]) continue;
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, wire::reasons::kSessionsDiffer,
        absl::StrCat("the commit names session ", commit.sessions[i],
                     " of rank ", rank, "; here session ", session,
                     " sealed event ", event),
        {{"event", absl::StrCat(event)},
         {"trainer_rank", absl::StrCat(rank)},
         {"session", absl::StrCat(session)}});
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
