#ifndef ROWHOUSE_BENCH_KERNELS_SPARSE_TABLE_H_
#define ROWHOUSE_BENCH_KERNELS_SPARSE_TABLE_H_

#include <cstdint>
#include <vector>

#include "bench/support/array.h"
#include "bench/support/inputs.h"
#include "bench/support/run.h"
#include "kernels/backend.h"

namespace rowhouse::bench {

/// A bf16 table whose every page was written, and distinct rows of it, spread
/// over the whole table at random: what one event touches.
class SparseTable {
 public:
  /// `kilo_rows` thousand rows (so many rows, in a quick run) of `dim`.
  SparseTable(int64_t kilo_rows, int64_t dim)
      : row_count_(kilo_rows * Size(1000, 1)),
        dim_(dim),
        weights_(row_count_ * dim),
        states_(row_count_) {}

  kernels::RowTable view() const {
    kernels::RowTable table;
    table.weights = weights_.data();
    table.states = states_.data();
    table.row_count = row_count_;
    table.dim = dim_;
    return table;
  }

  /// Rows that an event touches, or a pull asks for.
  static int64_t touched() { return Size(393216, 256); }
  double row_bytes() const { return static_cast<double>(2 * dim_); }
  double row_count() const { return static_cast<double>(row_count_); }

  Array<kernels::RowState>& states() { return states_; }

 private:
  int64_t row_count_;
  int64_t dim_;
  Array<uint16_t> weights_;
  Array<kernels::RowState> states_;
};

/// A table with `touched` slots in ascending and in random order, and as many
/// rows beside it.
struct TouchedTable : SparseTable {
  TouchedTable(int64_t kilo_rows, int64_t dim)
      : SparseTable(kilo_rows, dim),
        sorted(SpreadNumbers(touched(), view().row_count, 1)),
        shuffled(Shuffled(SpreadNumbers(touched(), view().row_count, 1))),
        rows(touched() * dim, NormalBf16()) {}

  Array<int64_t> sorted;
  Array<int64_t> shuffled;
  Array<uint16_t> rows;  ///< [touched, dim], normal: gradients.
};

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_KERNELS_SPARSE_TABLE_H_
