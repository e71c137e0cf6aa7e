#ifndef ROWHOUSE_CLIENT_INTERNAL_CANCELLATION_H_
#define ROWHOUSE_CLIENT_INTERNAL_CANCELLATION_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "client/internal/clock.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// Ends calls and waits that are under way, once and for good.
///
/// Thread-safe.
class Cancellation {
 public:
  Cancellation() = default;
  /// Cancelled with `parent` too, which must outlive it.
  explicit Cancellation(Cancellation& parent);
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  /// Runs every callback; a repeat does nothing.
  void Cancel();

  bool cancelled() const;

  /// Waits until `time` or cancellation; returns whether it was `time`.
  bool WaitUntil(Clock& clock, absl::Time time);

  /// Calls `callback` once when cancelled, at once if that is past; not after
  /// the destructor. Callbacks must be quick and must not touch this
  /// cancellation.
  class Callback {
   public:
    Callback(Cancellation& cancellation, absl::AnyInvocable<void()> callback);
    ~Callback();
    Callback(const Callback&) = delete;
    Callback& operator=(const Callback&) = delete;

   private:
    Cancellation& cancellation_;
    int64_t id_ = 0;
  };

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<int64_t, absl::AnyInvocable<void()>> callbacks_
      ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Callback> on_parent_;
};

/// How long a call may take, and who may end it earlier.
struct CallContext {
  absl::Time deadline = absl::InfiniteFuture();
  Cancellation* cancellation = nullptr;  ///< May be null.
};

/// For who waits on a condition: wakes the wait when the call is cancelled.
/// Made and destroyed without the mutex; `mutex` and `changed` must outlive it.
class WaitCancellation {
 public:
  WaitCancellation(const CallContext& context, Mutex& mutex, CondVar& changed);

  /// Whether it has been. The mutex must be held.
  bool cancelled() const { return cancelled_; }

 private:
  bool cancelled_ = false;
  Cancellation never_;
  Cancellation::Callback callback_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CANCELLATION_H_
