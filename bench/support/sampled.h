#ifndef ROWHOUSE_BENCH_SUPPORT_SAMPLED_H_
#define ROWHOUSE_BENCH_SUPPORT_SAMPLED_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

namespace rowhouse::bench {

/// A ceiling: the median rate of three passes, measured anew where the last
/// measurement is more than a second old, so that a share of it holds while a
/// shared machine gets faster or slower.
class SampledRate {
 public:
  /// `pass` does `work` each time.
  double Of(double work, const std::function<void()>& pass) {
    if (rate_ > 0 && Clock::now() - taken_ < std::chrono::seconds(1)) {
      return rate_;
    }
    if (rate_ == 0) pass();  // Touches what it works on.
    std::array<double, 3> seconds{};
    for (double& took : seconds) {
      const Clock::time_point start = Clock::now();
      pass();
      took = std::chrono::duration<double>(Clock::now() - start).count();
    }
    std::sort(seconds.begin(), seconds.end());
    rate_ = work / seconds[1];
    taken_ = Clock::now();
    return rate_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  double rate_ = 0;
  Clock::time_point taken_;
};

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_SAMPLED_H_
