#include "client/cli/latencies.h"

#include <algorithm>
#include <cmath>

namespace rowhouse::cli {

void Latencies::Merge(const Latencies& other) {
  durations_.insert(durations_.end(), other.durations_.begin(),
                    other.durations_.end());
}

absl::Duration Latencies::Quantile(double share) const {
  if (durations_.empty()) return absl::ZeroDuration();
  const auto rank = static_cast<int64_t>(
      std::ceil(share * static_cast<double>(durations_.size())));
  std::vector<absl::Duration> sorted = durations_;
  const auto nth =
      sorted.begin() + std::clamp<int64_t>(rank, 1, std::ssize(sorted)) - 1;
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

}  // namespace rowhouse::cli
