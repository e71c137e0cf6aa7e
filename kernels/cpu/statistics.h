#ifndef ROWHOUSE_KERNELS_CPU_STATISTICS_H_
#define ROWHOUSE_KERNELS_CPU_STATISTICS_H_

#include <atomic>
#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cpu {

/// Loop bodies add what they counted to a sum that they share.
inline void AddTo(int64_t& sum, int64_t value) {
  std::atomic_ref<int64_t>(sum).fetch_add(value, std::memory_order_relaxed);
}

inline void AddTo(EventReport& sum, const EventReport& report) {
  AddTo(sum.entry_count, report.entry_count);
  AddTo(sum.row_visits, report.row_visits);
  AddTo(sum.untouched_row_count, report.untouched_row_count);
  AddTo(sum.bytes_moved, report.bytes_moved);
}

/// Adds one row's sum of squares, exactly.
inline void AddRow(GradientStatistics& statistics, float sum_of_squares) {
  ++statistics.row_count;
  if (!IsFinite(sum_of_squares)) {
    ++statistics.non_finite_row_count;
    return;
  }
  const SquareTerm term = SquareTerm::Of(sum_of_squares);
  statistics.significand_sums[term.exponent] += term.significand;
}

inline void AddTo(GradientStatistics& sum,
                  const GradientStatistics& statistics) {
  for (int i = 0; i < GradientStatistics::kExponents; ++i) {
    if (statistics.significand_sums[i] != 0) {
      AddTo(sum.significand_sums[i], statistics.significand_sums[i]);
    }
  }
  AddTo(sum.row_count, statistics.row_count);
  AddTo(sum.non_finite_row_count, statistics.non_finite_row_count);
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_STATISTICS_H_
