#ifndef ROWHOUSE_CLIENT_INTERNAL_PULL_GATE_H_
#define ROWHOUSE_CLIENT_INTERNAL_PULL_GATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/internal/cancellation.h"
#include "client/internal/clock.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// Keeps a session to two open pulls on each shard, as many as a server stages.
///
/// Thread-safe.
class PullGate {
 public:
  explicit PullGate(int32_t shard_count) : open_(shard_count) {}

  /// Waits for a place.
  ///
  /// Errors:
  ///   kDeadlineExceeded, kCancelled
  absl::Status Enter(int32_t shard, Clock& clock, const CallContext& context);
  void Leave(int32_t shard);

 private:
  static constexpr int32_t kPlaces = 2;

  Mutex mutex_;
  CondVar changed_;
  std::vector<int32_t> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_PULL_GATE_H_
