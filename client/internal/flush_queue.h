#ifndef ROWHOUSE_CLIENT_INTERNAL_FLUSH_QUEUE_H_
#define ROWHOUSE_CLIENT_INTERNAL_FLUSH_QUEUE_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// A weight gradient that is a part of a contribution.
struct DelayedGradient {
  int64_t event = 0;
  int32_t part = 0;
  bool applied = false;  ///< Its event is known to be; the rest is not set.
};

/// The weight gradients of a trainer's head calls that nobody has waited for
/// yet, first in, first out. Does not grow where nobody ever waits: those of
/// events that must be past are only counted.
///
/// Thread-safe.
class FlushQueue {
 public:
  /// REQUIRES: the servers have accepted the part. So events up to `event - 2`
  /// are applied.
  void Push(const DelayedGradient& gradient);

  /// Takes the oldest, if there is one.
  std::optional<DelayedGradient> Pop();

  /// Gives back what `Pop` took.
  void PutBack(const DelayedGradient& gradient);

  /// Forgets those of an event whose contribution was discarded.
  void Discard(int64_t event);

 private:
  Mutex mutex_;
  int64_t applied_count_ ABSL_GUARDED_BY(mutex_) = 0;  // Older than the queue.
  std::deque<DelayedGradient> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_FLUSH_QUEUE_H_
