#ifndef ROWHOUSE_BENCH_SUPPORT_CHECK_H_
#define ROWHOUSE_BENCH_SUPPORT_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rowhouse::bench {

/// Ends the process where what a benchmark needs is not to be had, say memory.
inline void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::_Exit(1);  // No destructor may use what failed.
}

template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_CHECK_H_
