#ifndef ROWHOUSE_CLIENT_INTERNAL_PULL_GATE_H_
#define ROWHOUSE_CLIENT_INTERNAL_PULL_GATE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/internal/cancellation.h"
#include "client/internal/clock.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// Keeps a session to so many open calls of a kind on each shard as a server
/// has places for.
///
/// Thread-safe.
class PullGate {
 public:
  /// `what`: for messages, and stays valid.
  PullGate(int32_t shard_count, int32_t places, const char* what)
      : places_(places), what_(what), open_(shard_count) {}

  /// Waits for a place.
  ///
  /// Errors:
  ///   kDeadlineExceeded, kCancelled
  absl::Status Enter(int32_t shard, Clock& clock, const CallContext& context);
  void Leave(int32_t shard);

 private:
  const int32_t places_;
  const char* const what_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int32_t> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_PULL_GATE_H_
