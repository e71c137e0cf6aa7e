#ifndef ROWHOUSE_TESTS_CLIENT_FAKE_CLOCK_H_
#define ROWHOUSE_TESTS_CLIENT_FAKE_CLOCK_H_

#include <algorithm>
#include <vector>

#include "absl/time/time.h"
#include "client/internal/clock.h"

namespace rowhouse::testing {

/// A clock on which every wait is over at once; it remembers them.
///
/// Thread-compatible.
class FakeClock final : public client::internal::Clock {
 public:
  absl::Time Now() const override { return now_; }

  void WaitUntil(CondVar&, Mutex&, absl::Time time) override {
    waits_.push_back(time - now_);
    now_ = std::max(now_, time);
  }

  void Advance(absl::Duration by) { now_ += by; }
  const std::vector<absl::Duration>& waits() const { return waits_; }

 private:
  absl::Time now_ = absl::UnixEpoch();
  std::vector<absl::Duration> waits_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_FAKE_CLOCK_H_
