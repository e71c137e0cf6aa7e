#ifndef ROWHOUSE_CLIENT_INTERNAL_RETRY_H_
#define ROWHOUSE_CLIENT_INTERNAL_RETRY_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "client/internal/clock.h"
#include "rowhouse/cluster.h"

namespace rowhouse::client::internal {

/// Whether the same call may go through later: kUnavailable, kResourceExhausted
/// with a stated delay, kDeadlineExceeded for an event that is pending,
/// kAborted by another call of the same name.
bool IsRetryable(const absl::Status& status);

/// The waits between the tries of one call.
class Backoff {
 public:
  Backoff(const RetryOptions& options, uint64_t seed);

  /// The next wait, for a call that failed with `status`: at least what the
  /// server stated.
  absl::Duration Next(const absl::Status& status);

 private:
  RetryOptions options_;
  absl::Duration next_;
  uint64_t random_;
};

/// Calls `attempt` until it ends OK or with a fault that will not pass, the
/// deadline leaves no time for another try, or the call is cancelled. Returns
/// the last result. Waits without sleeping: a cancellation ends a wait.
absl::Status RetryUntil(Clock& clock, const RetryOptions& options,
                        const CallContext& context,
                        absl::FunctionRef<absl::Status()> attempt);

/// The same for a call that has a value.
template <typename T>
absl::StatusOr<T> RetryValueUntil(
    Clock& clock, const RetryOptions& options, const CallContext& context,
    absl::FunctionRef<absl::StatusOr<T>()> attempt) {
  absl::StatusOr<T> result = absl::UnknownError("no attempt");
  const absl::Status status = RetryUntil(clock, options, context, [&] {
    result = attempt();
    return result.status();
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_RETRY_H_
