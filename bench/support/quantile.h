#ifndef ROWHOUSE_BENCH_SUPPORT_QUANTILE_H_
#define ROWHOUSE_BENCH_SUPPORT_QUANTILE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rowhouse::bench {

/// The value that `share` of the others do not exceed; reorders `values`, which
/// must not be empty.
template <typename T>
T Quantile(std::vector<T>& values, double share) {
  const auto at =
      values.begin() +
      static_cast<int64_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_QUANTILE_H_
