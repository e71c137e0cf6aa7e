#include "client/internal/clock.h"

#include <memory>

#include "absl/time/clock.h"

namespace rowhouse::client::internal {
namespace {

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  void WaitUntil(CondVar& changed, Mutex& mutex, absl::Time time) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (time == absl::InfiniteFuture()) {
      changed.Wait(mutex);
    } else {
      changed.WaitUntil(mutex, absl::ToChronoTime(time));
    }
  }
};

}  // namespace

std::unique_ptr<Clock> MakeSystemClock() {
  return std::make_unique<SystemClock>();
}

}  // namespace rowhouse::client::internal
