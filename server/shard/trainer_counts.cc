#include "server/shard/trainer_counts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

absl::StatusOr<TrainerCounts> TrainerCounts::Of(
    std::vector<TrainerCountChange> changes) {
  if (changes.empty() || static_cast<int32_t>(changes.size()) > kMostChanges) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", changes.size(),
                     " trainer counts; there must be 1 to ", kMostChanges));
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    const TrainerCountChange& change = changes[i];
    const int64_t least = i == 0 ? 1 : changes[i - 1].from_event + 1;
    const int64_t most =
        i == 0 ? 1 : std::numeric_limits<int64_t>::max() - kMost;
    if (change.from_event < least || change.from_event > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "trainer count ", i, " is from event ", change.from_event,
          "; it must be from ", i == 0 ? "1" : "a later one than that before"));
    }
    if (change.trainer_count < 1 || change.trainer_count > kMost) {
      return absl::InvalidArgumentError(
          absl::StrCat("trainer count ", i, " is ", change.trainer_count,
                       "; it must be in [1, ", kMost, "]"));
    }
  }
  TrainerCounts counts(changes.front().trainer_count);
  counts.changes_ = std::move(changes);
  return counts;
}

int32_t TrainerCounts::At(int64_t event) const {
  int32_t count = changes_.front().trainer_count;
  for (const TrainerCountChange& change : changes_) {
    if (change.from_event > event) break;
    count = change.trainer_count;
  }
  return count;
}

int32_t TrainerCounts::MostFrom(int64_t event) const {
  int32_t most = At(event);
  for (const TrainerCountChange& change : changes_) {
    if (change.from_event > event) most = std::max(most, change.trainer_count);
  }
  return most;
}

absl::Status TrainerCounts::Set(const TrainerCountChange& change,
                                int64_t current_event) {
  if (change.trainer_count < 1 || change.trainer_count > kMost) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadCount,
                       absl::StrCat("trainer_count is ", change.trainer_count,
                                    "; it must be in [1, ", kMost, "]"),
                       {{"trainer_count", absl::StrCat(change.trainer_count)}});
  }
  if (change.from_event < 1) {
    return BadEventError("from_event", change.from_event, 1);
  }
  if (change.from_event < current_event + 3) {
    const bool made_before = std::any_of(
        changes_.begin(), changes_.end(), [&](const TrainerCountChange& made) {
          return made.from_event == change.from_event &&
                 made.trainer_count == change.trainer_count;
        });
    if (made_before) return absl::OkStatus();
    return EventPastError("parts may have been accepted for event",
                          change.from_event, current_event);
  }
  std::vector<TrainerCountChange> changes = changes_;
  while (changes.back().from_event >= change.from_event) changes.pop_back();
  // A change that changes nothing is not kept.
  if (changes.back().trainer_count != change.trainer_count) {
    changes.push_back(change);
  }
  if (static_cast<int32_t>(changes.size()) > kMostChanges) {
    return wire::Error(absl::StatusCode::kResourceExhausted,
                       wire::reasons::kTrainerCountsFull,
                       absl::StrCat("the table has had ", changes_.size() - 1,
                                    " changes of its trainer count; at most ",
                                    kMostChanges - 1, " are kept"),
                       {{"limit", "changes of the trainer count"},
                        {"value", absl::StrCat(kMostChanges - 1)}});
  }
  changes_ = std::move(changes);
  return absl::OkStatus();
}

}  // namespace rowhouse::server
