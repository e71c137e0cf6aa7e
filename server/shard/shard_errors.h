#ifndef ROWHOUSE_SERVER_SHARD_SHARD_ERRORS_H_
#define ROWHOUSE_SERVER_SHARD_SHARD_ERRORS_H_

/// Faults that several parts of a shard report.

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/shard/ledger.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// What a refusal for want of room asks its caller to wait.
inline constexpr absl::Duration kRetryDelay = absl::Milliseconds(50);

/// INVALID_ARGUMENT BAD_EVENT: `event` is below `least`.
absl::Status BadEventError(std::string_view field, int64_t event,
                           int64_t least);

/// FAILED_PRECONDITION EVENT_AHEAD: `event` is past `last_wanted`.
absl::Status EventAheadError(int64_t event, int64_t current_event,
                             int64_t last_wanted);

/// FAILED_PRECONDITION EVENT_PAST: `what` came too late.
absl::Status EventPastError(std::string_view what, int64_t event,
                            int64_t current_event);

/// INVALID_ARGUMENT BAD_RANK: the rank is not in [0, trainer_count).
absl::Status BadRankError(int32_t trainer_rank, int32_t trainer_count);

/// INVALID_ARGUMENT BAD_SHAPE: a size or count of a message.
absl::Status BadShapeError(std::string_view what, int64_t found,
                           int64_t wanted);

/// INVALID_ARGUMENT BAD_COUNT: a count that was announced.
absl::Status BadCountError(std::string_view what, int64_t found,
                           int64_t wanted);

/// FAILED_PRECONDITION CONTRIBUTION_SEALED: by `session`, with `part_count`.
absl::Status ContributionSealedError(int64_t event, int32_t trainer_rank,
                                     int64_t session, int32_t part_count);

/// ALREADY_EXISTS COMMIT_DIFFERS.
absl::Status CommitDiffersError(int64_t event);

/// ABORTED SUPERSEDED: the part was known when it began to land, then dropped.
absl::Status DroppedPartError(const PartName& name);

/// DEADLINE_EXCEEDED EVENT_PENDING.
absl::Status EventPendingError(int64_t current_event);

/// `status` with memory of its own, to hand to another thread.
absl::Status DeepCopy(const absl::Status& status);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SHARD_ERRORS_H_
