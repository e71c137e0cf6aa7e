#ifndef ROWHOUSE_SURVEY_H_
#define ROWHOUSE_SURVEY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rowhouse/event_state.h"
#include "rowhouse/types.h"

namespace rowhouse::client {

/// One shard of a table, as its server tells it.
struct ShardState {
  std::string table;
  TableSpec spec;  ///< Without an imported sign pool.
  int32_t shard_index = 0;
  int64_t first_row = 0;
  int64_t end_row = 0;
  int64_t reserved_bytes = 0;
  std::vector<TrainerCountChange> trainer_counts;
  EventState events;
};

/// What one server says of itself.
struct ServerState {
  std::string address;
  /// OK, or why the server cannot be worked with or what follows is not
  /// complete: kUnavailable, kDeadlineExceeded, or kFailedPrecondition
  /// (SERVER_DIFFERS) for a server of another cluster, index or server count.
  absl::Status status;
  std::optional<ServerInfo> info;  ///< Set when it answered at all.
  std::vector<ShardState> shards;  ///< By table name.
};

/// What `Cluster::Survey` asks for.
struct SurveyOptions {
  absl::Duration timeout = absl::Seconds(10);  ///< Of all answers together.
  std::string cluster_id = {};  ///< Must be the servers'; empty: not checked.
  bool tables = true;           ///< Asks for shards; else for `info` alone.
  std::string table = {};       ///< Asks for the shards of this table alone.
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_SURVEY_H_
