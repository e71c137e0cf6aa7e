#ifndef ROWHOUSE_SERVER_SHARD_TIMER_QUEUE_H_
#define ROWHOUSE_SERVER_SHARD_TIMER_QUEUE_H_

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace rowhouse::server {

/// Tells the time and calls back at a time. Tests put their own in its place.
///
/// Thread-safe.
class TimerQueue {
 public:
  virtual ~TimerQueue() = default;

  virtual absl::Time Now() const = 0;

  /// Calls `callback` once, at `time` or a little after, on a thread of the
  /// queue. Callbacks must be quick. Those not yet due are dropped when the
  /// queue is destroyed.
  virtual void CallAt(absl::Time time, absl::AnyInvocable<void()> callback) = 0;
};

/// The system's clock, and one thread.
std::unique_ptr<TimerQueue> MakeSystemTimerQueue();

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_TIMER_QUEUE_H_
