#ifndef ROWHOUSE_SERVER_SERVICE_CALL_TURN_H_
#define ROWHOUSE_SERVER_SERVICE_CALL_TURN_H_

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// Settles who ends a call that the lane may revoke at any time, while the call
/// itself reads, writes, or waits for the shard's work. Held by both sides,
/// since the call may go as soon as it has been ended.
///
/// Thread-safe.
class CallTurn {
 public:
  /// Calls `start`, which starts a read or a write, unless the call has ended.
  void Start(absl::FunctionRef<void()> start) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (!ended_) start();
  }

  /// Whether work may be handed to the shard. From then to `LeaveShard` the
  /// call is not to end: its work refers to it. False once the call has been
  /// revoked, and so is ended by the lane, if it has not been yet.
  [[nodiscard]] bool EnterShard() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (ended_ || !revoked_.ok()) return false;
    in_shard_ = true;
    return true;
  }

  /// The shard's work is through. What the call was revoked with meanwhile, and
  /// is to end with; or OK.
  absl::Status LeaveShard() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    in_shard_ = false;
    return revoked_;
  }

  /// For the lane. True: it has to end the call. False: the shard's work under
  /// way will, with `reason`.
  [[nodiscard]] bool Revoke(const absl::Status& reason)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    revoked_ = reason;
    return !in_shard_;
  }

  /// Calls `finish`, which ends the call. Once: a second end does nothing.
  void End(absl::FunctionRef<void()> finish) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    finish();
  }

 private:
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool in_shard_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status revoked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_CALL_TURN_H_
