#include "server/shard/timer_queue.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/mutex.h"

namespace rowhouse::server {
namespace {

class SystemTimerQueue final : public TimerQueue {
 public:
  SystemTimerQueue() : thread_([this] { Run(); }) {}

  ~SystemTimerQueue() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      changed_.SignalOne();
    }
    thread_.join();
  }

  absl::Time Now() const override { return absl::Now(); }

  void CallAt(absl::Time time, absl::AnyInvocable<void()> callback) override {
    MutexLock lock(mutex_);
    timers_.push_back({time, next_number_++, std::move(callback)});
    std::push_heap(timers_.begin(), timers_.end(), Later);
    changed_.SignalOne();
  }

 private:
  struct Timer {
    absl::Time time;
    int64_t number;  // Equal times fire in the order they were set.
    absl::AnyInvocable<void()> callback;
  };

  static bool Later(const Timer& a, const Timer& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }

  // The next callback that is due, or an empty one at the end.
  absl::AnyInvocable<void()> WaitForDue() {
    MutexLock lock(mutex_);
    while (!stopping_) {
      const absl::Time now = absl::Now();
      if (!timers_.empty() && timers_.front().time <= now) {
        std::pop_heap(timers_.begin(), timers_.end(), Later);
        absl::AnyInvocable<void()> due = std::move(timers_.back().callback);
        timers_.pop_back();
        return due;
      }
      // An hour: far times would overflow the system's clock, and clocks are
      // set back.
      absl::Time until = now + absl::Hours(1);
      if (!timers_.empty()) until = std::min(until, timers_.front().time);
      changed_.WaitUntil(mutex_, absl::ToChronoTime(until));
    }
    return nullptr;
  }

  void Run() {
    while (absl::AnyInvocable<void()> due = WaitForDue()) due();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<Timer> timers_ ABSL_GUARDED_BY(mutex_);  // A heap, by `Later`.
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: runs on the members above.
};

}  // namespace

std::unique_ptr<TimerQueue> MakeSystemTimerQueue() {
  return std::make_unique<SystemTimerQueue>();
}

}  // namespace rowhouse::server
