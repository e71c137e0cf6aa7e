#ifndef ROWHOUSE_CLIENT_PUSH_LOG_REPLAY_TRAINERS_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_REPLAY_TRAINERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/record_stream.h"
#include "rowhouse/trainer.h"

namespace rowhouse::client::push_log {

/// The trainers of a replay: one of each rank, in this process.
///
/// Thread-compatible.
class ReplayTrainers {
 public:
  /// `cluster` must outlive it.
  ReplayTrainers(Cluster& cluster, std::string table, absl::Duration timeout)
      : cluster_(cluster), table_(std::move(table)), timeout_(timeout) {}

  /// Joins those that are missing of `count`, and lets go of the others.
  absl::Status SetCount(int32_t count);

  /// Contributes a part; returns whether the largest logits, if it is of a head
  /// call, are those of the recording.
  absl::StatusOr<bool> Push(int64_t event, const internal::RecordedPart& part);

  /// Seals all contributions, commits, and waits until the event is applied.
  absl::Status Apply(int64_t event, const EventUpdate& update);

 private:
  absl::StatusOr<bool> PushHead(int64_t event,
                                const internal::RecordedPart& part);

  Cluster& cluster_;
  const std::string table_;
  const absl::Duration timeout_;
  std::vector<std::unique_ptr<Trainer>> trainers_;  // By rank.
};

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_REPLAY_TRAINERS_H_
