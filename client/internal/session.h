#ifndef ROWHOUSE_CLIENT_INTERNAL_SESSION_H_
#define ROWHOUSE_CLIENT_INTERNAL_SESSION_H_

#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/router.h"
#include "client/internal/shard_channel.h"

namespace rowhouse::client::internal {

/// A session that is open on every shard of its table.
struct OpenedSession {
  TrainerSession trainer;
  absl::Duration lease;  ///< The shortest that a shard gave.
};

/// Opens a session of `rank` that is newer than all before it.
///
/// Asks every shard for its sessions, takes the highest number plus 1, and
/// opens that on shard 0, then on the rest; when another owner was faster
/// somewhere, again with higher numbers.
///
/// Errors:
///   kAborted  FENCED: others of this rank were faster every time.
absl::StatusOr<OpenedSession> OpenSessionEverywhere(const Router& router,
                                                    int32_t rank,
                                                    const CallContext& context);

/// What a trainer finds when it begins.
struct Inheritance {
  int64_t committed_event = 0;  ///< The newest that some shard has recorded.
  /// Open events with a contribution of this rank that is final.
  std::set<int64_t> sealed_events;
};

/// Reads what the rank's predecessor left: a contribution sealed on every shard
/// is final, one sealed on some is discarded on all.
///
/// REQUIRES: `trainer` is open on every shard, so the predecessor is fenced.
absl::StatusOr<Inheritance> SettleContributions(const Router& router,
                                                TrainerSession trainer,
                                                const CallContext& context);

/// Rank 0: repeats the newest commit that some shard has recorded on all.
absl::Status RepeatCommit(const Router& router, TrainerSession trainer,
                          const CallContext& context);

/// The state of every shard, by shard.
absl::StatusOr<std::vector<EventState>> ReadEventStates(
    const Router& router, const CallContext& context);

/// The newest event that the shard has applied or recorded the commit of.
int64_t CommittedEvent(const EventState& state);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_SESSION_H_
