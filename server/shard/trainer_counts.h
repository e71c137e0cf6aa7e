#ifndef ROWHOUSE_SERVER_SHARD_TRAINER_COUNTS_H_
#define ROWHOUSE_SERVER_SHARD_TRAINER_COUNTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// How many trainers contribute to each event.
///
/// Thread-compatible.
class TrainerCounts {
 public:
  static constexpr int32_t kMost = 4096;
  /// Entries kept: every event's count must be known for ever, and lists of
  /// tables carry them.
  static constexpr int32_t kMostChanges = 1024;

  /// Takes `changes` of another life of the table.
  ///
  /// Errors:
  ///   kInvalidArgument  they cannot have been; names the first that is wrong.
  static absl::StatusOr<TrainerCounts> Of(
      std::vector<TrainerCountChange> changes);

  explicit TrainerCounts(int32_t first_count) : changes_{{1, first_count}} {}

  /// The count of `event`, which is at least 1.
  int32_t At(int64_t event) const;

  /// The largest count of any event from `event` on, as scheduled.
  int32_t MostFrom(int64_t event) const;

  /// Changes the count from `change.from_event` on, in place of all changes at
  /// that event and later. A change that was made before is OK again.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_COUNT, BAD_EVENT.
  ///   kFailedPrecondition  EVENT_PAST: the event is not at least 3 past
  ///                        `current_event`.
  absl::Status Set(const TrainerCountChange& change, int64_t current_event);

  /// Ascending; the first is from event 1.
  const std::vector<TrainerCountChange>& changes() const { return changes_; }

 private:
  std::vector<TrainerCountChange> changes_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_TRAINER_COUNTS_H_
