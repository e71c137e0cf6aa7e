#ifndef ROWHOUSE_CLIENT_CLI_INTERVALS_H_
#define ROWHOUSE_CLIENT_CLI_INTERVALS_H_

#include <vector>

#include "absl/time/time.h"

namespace rowhouse::cli {

/// From `begin`, not later, to `end`.
struct Interval {
  absl::Time begin;
  absl::Time end;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// What lies in any of them: ascending, apart from each other, none empty. Such
/// a list is a *union* below.
std::vector<Interval> UnionOf(std::vector<Interval> intervals);

/// What lies in both; a union.
///
/// REQUIRES: both are unions.
std::vector<Interval> Common(const std::vector<Interval>& a,
                             const std::vector<Interval>& b);

/// REQUIRES: a union.
absl::Duration LengthOf(const std::vector<Interval>& intervals);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_INTERVALS_H_
