#include "server/shard/shard_errors.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

absl::Status CountError(std::string_view reason, std::string_view what,
                        int64_t found, int64_t wanted) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, reason,
      absl::StrCat(View(what), ": ", found, " were found; there must be ",
                   wanted),
      {{"found", absl::StrCat(found)}, {"wanted", absl::StrCat(wanted)}});
}

}  // namespace

absl::Status BadEventError(std::string_view field, int64_t event,
                           int64_t least) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadEvent,
      absl::StrCat(View(field), " is ", event, "; it must be at least ", least),
      {{"event", absl::StrCat(event)}});
}

absl::Status EventAheadError(int64_t event, int64_t current_event,
                             int64_t last_wanted) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kEventAhead,
      absl::StrCat("event is ", event, "; the last applied is ", current_event,
                   ", so it must be at most ", last_wanted),
      {{"event", absl::StrCat(event)},
       {"current_event", absl::StrCat(current_event)}});
}

absl::Status EventPastError(std::string_view what, int64_t event,
                            int64_t current_event) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kEventPast,
      absl::StrCat(View(what), " ", event, "; the last applied event is ",
                   current_event),
      {{"event", absl::StrCat(event)},
       {"current_event", absl::StrCat(current_event)}});
}

absl::Status BadRankError(int32_t trainer_rank, int32_t trainer_count) {
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kBadRank,
                     absl::StrCat("trainer_rank is ", trainer_rank,
                                  "; it must be in [0, ", trainer_count, ")"),
                     {{"trainer_rank", absl::StrCat(trainer_rank)},
                      {"trainer_count", absl::StrCat(trainer_count)}});
}

absl::Status BadShapeError(std::string_view what, int64_t found,
                           int64_t wanted) {
  return CountError(wire::reasons::kBadShape, what, found, wanted);
}

absl::Status BadCountError(std::string_view what, int64_t found,
                           int64_t wanted) {
  return CountError(wire::reasons::kBadCount, what, found, wanted);
}

absl::Status ContributionSealedError(int64_t event, int32_t trainer_rank,
                                     int64_t session, int32_t part_count) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kContributionSealed,
      absl::StrCat("the contribution of rank ", trainer_rank, " to event ",
                   event, " was sealed by session ", session, " with ",
                   part_count, " parts"),
      {{"event", absl::StrCat(event)},
       {"trainer_rank", absl::StrCat(trainer_rank)},
       {"session", absl::StrCat(session)},
       {"part_count", absl::StrCat(part_count)}});
}

absl::Status DroppedPartError(const PartName& name) {
  return wire::Error(
      absl::StatusCode::kAborted, wire::reasons::kSuperseded,
      absl::StrCat("part ", name.part, " of rank ", name.trainer_rank,
                   " for event ", name.event,
                   " was known when it began to land and then dropped"),
      {{"event", absl::StrCat(name.event)},
       {"trainer_rank", absl::StrCat(name.trainer_rank)},
       {"part", absl::StrCat(name.part)}});
}

absl::Status EventPendingError(int64_t current_event) {
  return wire::Error(
      absl::StatusCode::kDeadlineExceeded, wire::reasons::kEventPending,
      absl::StrCat("the last applied event is ", current_event,
                   "; the one waited for is still open: ask again"),
      {{"current_event", absl::StrCat(current_event)}});
}

absl::Status CommitDiffersError(int64_t event) {
  return wire::Error(
      absl::StatusCode::kAlreadyExists, wire::reasons::kCommitDiffers,
      absl::StrCat("event ", event,
                   " was committed with other sessions or scalars"),
      {{"event", absl::StrCat(event)}});
}

absl::Status DeepCopy(const absl::Status& status) {
  absl::Status copy(status.code(), status.message());
  const std::optional<wire::ErrorDetails> details = wire::DetailsOf(status);
  return details.has_value() ? wire::WithDetails(copy, *details) : copy;
}

}  // namespace rowhouse::server
