#include "client/cli/intervals.h"

#include <algorithm>
#include <cstddef>

namespace rowhouse::cli {

std::vector<Interval> UnionOf(std::vector<Interval> intervals) {
  std::sort(
      intervals.begin(), intervals.end(),
      [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> all;
  for (const Interval& interval : intervals) {
    if (interval.begin == interval.end) continue;
    if (!all.empty() && interval.begin <= all.back().end) {
      all.back().end = std::max(all.back().end, interval.end);
    } else {
      all.push_back(interval);
    }
  }
  return all;
}

std::vector<Interval> Common(const std::vector<Interval>& a,
                             const std::vector<Interval>& b) {
  std::vector<Interval> common;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const Interval both = {std::max(a[i].begin, b[j].begin),
                           std::min(a[i].end, b[j].end)};
    if (both.begin < both.end) common.push_back(both);
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common;
}

absl::Duration LengthOf(const std::vector<Interval>& intervals) {
  absl::Duration length;
  for (const Interval& interval : intervals) {
    length += interval.end - interval.begin;
  }
  return length;
}

}  // namespace rowhouse::cli
