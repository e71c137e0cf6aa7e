#ifndef ROWHOUSE_SERVER_TRANSPORT_RETRY_ALLOCATION_H_
#define ROWHOUSE_SERVER_TRANSPORT_RETRY_ALLOCATION_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rowhouse::server {

/// After a server was killed, clients have its memory mapped until they notice.
/// A successor that finds too little waits for them.
class AllocationRetry {
 public:
  AllocationRetry(absl::Duration patience, absl::Duration pause);

  /// Whether to try again after `status`: memory was short, and there is time.
  /// Says so in the log, and returns after a while.
  bool TryAgain(const absl::Status& status);

 private:
  const absl::Time deadline_;
  const absl::Duration pause_;
};

/// Calls `attempt` again after each `pause`, for as long as `patience`, while
/// it ends kResourceExhausted. Returns the last result.
template <typename T>
absl::StatusOr<T> RetryAllocation(
    absl::Duration patience, absl::FunctionRef<absl::StatusOr<T>()> attempt,
    absl::Duration pause = absl::Milliseconds(250)) {
  AllocationRetry retry(patience, pause);
  while (true) {
    absl::StatusOr<T> result = attempt();
    if (!retry.TryAgain(result.status())) return result;
  }
}

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_RETRY_ALLOCATION_H_
