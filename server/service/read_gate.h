#ifndef ROWHOUSE_SERVER_SERVICE_READ_GATE_H_
#define ROWHOUSE_SERVER_SERVICE_READ_GATE_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// Settles who ends a call that receives a stream: its own reactions, or
/// another thread, which may do so only while nothing but a read is under way.
/// Held by both, since the call may go as soon as it has been ended.
///
/// Thread-safe.
class ReadGate {
 public:
  /// Starts a read by calling `start`: from then on the call may be ended by
  /// another thread, and be gone.
  ///
  /// Errors: what the call was interrupted with; nothing was started then.
  absl::Status Read(absl::FunctionRef<void()> start)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (!interruption_.ok()) return std::move(interruption_);
    reading_ = true;
    start();
    return absl::OkStatus();
  }

  /// Begins the reaction to a read. False: another thread has ended the call;
  /// leave it alone.
  [[nodiscard]] bool Enter() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(reading_, false);
  }

  /// For another thread. True: nothing but a read was under way, and the caller
  /// has to end the call. False: the reaction under way will, with `reason`, if
  /// it goes on to read. Once.
  [[nodiscard]] bool Interrupt(const absl::Status& reason)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (std::exchange(reading_, false)) return true;
    interruption_ = reason;
    return false;
  }

 private:
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status interruption_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_READ_GATE_H_
