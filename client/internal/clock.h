#ifndef ROWHOUSE_CLIENT_INTERNAL_CLOCK_H_
#define ROWHOUSE_CLIENT_INTERNAL_CLOCK_H_

#include <memory>

#include "absl/time/time.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// Tells the time and waits. Tests put their own in its place.
///
/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() const = 0;

  /// Waits on `changed` until a signal or `time`; may return earlier.
  virtual void WaitUntil(CondVar& changed, Mutex& mutex, absl::Time time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
};

/// The system's clock.
std::unique_ptr<Clock> MakeSystemClock();

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CLOCK_H_
