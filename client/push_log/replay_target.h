#ifndef ROWHOUSE_CLIENT_PUSH_LOG_REPLAY_TARGET_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_REPLAY_TARGET_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "client/push_log/push_log.h"
#include "rowhouse/cluster.h"

namespace rowhouse::client::push_log {

struct ReplayTarget {
  TableInfo table;
  bool created = false;
};

/// Makes `table` ready for a log: creates it, or checks that it is as the
/// recorded one was at the start; and schedules the log's trainer counts.
///
/// Errors: those of `Replay`, before the first event.
absl::StatusOr<ReplayTarget> PrepareTarget(Cluster& cluster,
                                           std::string_view table,
                                           const LogInfo& log,
                                           const ReplayOptions& options);

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_REPLAY_TARGET_H_
