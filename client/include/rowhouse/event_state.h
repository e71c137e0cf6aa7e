#ifndef ROWHOUSE_EVENT_STATE_H_
#define ROWHOUSE_EVENT_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

/// What rank 0 said an event does.
struct EventCommit {
  std::vector<int64_t> sessions;  ///< Of each rank's sealed contribution.
  EventUpdate update;

  friend bool operator==(const EventCommit&, const EventCommit&) = default;
};

/// A rank's contribution to an open event, on one shard.
struct ContributionState {
  int32_t rank = 0;
  int64_t session = 0;
  bool sealed = false;
  int32_t part_count = 0;         ///< Parts staged.
  int64_t row_count = 0;          ///< Gradient rows staged.
  int64_t token_count = 0;        ///< Tokens of staged head parts.
  int32_t folded_part_count = 0;  ///< Parts in a dense table's main_grad.
};

/// An event that is not applied yet, on one shard.
struct OpenEventState {
  int64_t event = 0;
  int32_t trainer_count = 0;  ///< Ranks that it waits for.
  bool all_sealed = false;
  /// By rank; ranks that have not begun have none.
  std::vector<ContributionState> contributions;
};

/// An event that one shard has recorded the commit of.
struct AppliedEventState {
  int64_t event = 0;
  EventCommit commit;
  int64_t entry_count = 0;          ///< Gradient rows merged.
  int64_t row_count = 0;            ///< Distinct rows visited.
  int64_t untouched_row_count = 0;  ///< Rows whose update was not finite.
  int64_t moved_bytes = 0;          ///< Read and written.
};

/// A rank's newest session on one shard.
struct SessionState {
  int32_t rank = 0;
  int64_t session = 0;
  absl::Duration idle;  ///< Since it was opened or kept alive.
  bool lease_expired = false;
};

/// What waits and what is under way on one shard, as it answered. Servers that
/// do not tell leave zeros.
struct ShardLoad {
  int32_t lane_call_count = 0;  ///< Calls waiting for their turn,
  int32_t max_lane_call_count = 0;
  int32_t parked_call_count = 0;  ///< and for an event.
  int32_t max_parked_call_count = 0;
  int32_t open_pull_count = 0;     ///< Waiting, or being read.
  int32_t landing_part_count = 0;  ///< Parts being received.
  int32_t open_head_call_count = 0;
  int64_t staged_bytes = 0;     ///< Of the parts of open events.
  int32_t recording_count = 0;  ///< That take events; of the fullest buffer:
  int64_t recording_held_bytes = 0;
  int64_t recording_buffer_bytes = 0;

  friend bool operator==(const ShardLoad&, const ShardLoad&) = default;
};

/// What one shard knows of a table's events and sessions.
struct EventState {
  int64_t event = 0;                              ///< The last applied.
  std::vector<OpenEventState> open_events;        ///< Ascending, at most two.
  std::vector<AppliedEventState> applied_events;  ///< Ascending, at most two.
  std::vector<SessionState> sessions;             ///< By rank.
  ShardLoad load;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_EVENT_STATE_H_
