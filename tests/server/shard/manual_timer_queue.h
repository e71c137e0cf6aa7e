#ifndef ROWHOUSE_TESTS_SERVER_SHARD_MANUAL_TIMER_QUEUE_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_MANUAL_TIMER_QUEUE_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "kernels/mutex.h"
#include "server/shard/timer_queue.h"

namespace rowhouse::testing {

/// A clock that stands still until a test moves it. Callbacks run on the thread
/// that does. Starts at one day past the epoch.
///
/// Thread-safe.
class ManualTimerQueue final : public server::TimerQueue {
 public:
  absl::Time Now() const override {
    MutexLock lock(mutex_);
    return now_;
  }

  void CallAt(absl::Time time, absl::AnyInvocable<void()> callback) override {
    {
      MutexLock lock(mutex_);
      if (time > now_) {
        timers_.emplace(time, std::move(callback));
        return;
      }
    }
    callback();
  }

  void Advance(absl::Duration by) {
    std::vector<absl::AnyInvocable<void()>> due;
    {
      MutexLock lock(mutex_);
      now_ += by;
      const auto end = timers_.upper_bound(now_);
      for (auto it = timers_.begin(); it != end; ++it) {
        due.push_back(std::move(it->second));
      }
      timers_.erase(timers_.begin(), end);
    }
    for (absl::AnyInvocable<void()>& callback : due) callback();
  }

 private:
  mutable Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch() + absl::Hours(24);
  std::multimap<absl::Time, absl::AnyInvocable<void()>> timers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_MANUAL_TIMER_QUEUE_H_
