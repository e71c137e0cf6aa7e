#ifndef ROWHOUSE_CLIENT_CLI_LATENCIES_H_
#define ROWHOUSE_CLIENT_CLI_LATENCIES_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace rowhouse::cli {

/// How long calls of one kind took, every one of them.
class Latencies {
 public:
  void Add(absl::Duration duration) { durations_.push_back(duration); }
  void Merge(const Latencies& other);

  int64_t count() const { return static_cast<int64_t>(durations_.size()); }

  /// The shortest duration that at least `share` of the calls did not exceed;
  /// zero without calls.
  ///
  /// REQUIRES: `share` in (0, 1].
  absl::Duration Quantile(double share) const;

 private:
  std::vector<absl::Duration> durations_;
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_LATENCIES_H_
