#include "server/shard/trainer_counts.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

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
  while (changes_.back().from_event >= change.from_event) changes_.pop_back();
  changes_.push_back(change);
  return absl::OkStatus();
}

}  // namespace rowhouse::server
