#ifndef ROWHOUSE_KERNELS_CPU_MERGED_ROW_H_
#define ROWHOUSE_KERNELS_CPU_MERGED_ROW_H_

#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/cpu/merge.h"
#include "kernels/cpu/row_ops.h"

namespace rowhouse::kernels::cpu {

/// The merged gradient of a run of one entry, which is what most runs are: the
/// entry as it stands, added to +0.
template <typename Gradient>
struct OneEntry {
  const Gradient* row;

  float operator()(int64_t j) const { return 0.0F + Widen(row[j]); }
  /// The same but for the sign of a zero.
  float Unsigned(int64_t j) const { return Widen(row[j]); }
  /// Rounded to the entry's type, which it is of; any NaN may stand for NaN.
  float Rounded(int64_t j) const { return (*this)(j); }
  /// Columns `j` and `j + 1`.
  Bf16Pair Pair(int64_t j) const {
    if constexpr (std::is_same_v<Gradient, uint16_t>) {
      const Bf16Pair pair = Bf16Pair::Load(row + j);
      return {0.0F + pair.even, 0.0F + pair.odd};
    } else {
      return {(*this)(j), (*this)(j + 1)};
    }
  }
};

/// The merged gradient of several entries.
template <typename Gradient>
struct EntrySum {
  const float* row;

  float operator()(int64_t j) const { return row[j]; }
  float Unsigned(int64_t j) const { return row[j]; }
  float Rounded(int64_t j) const { return Widen(Narrow<Gradient>(row[j])); }
  Bf16Pair Pair(int64_t j) const { return {row[j], row[j + 1]}; }
};

/// Returns `visit(merged, before)` for the merged gradient of a run of
/// `entries`: `merged(j)` is column `j`, and `before(j)`, to be called before
/// each block of columns, fetches those of a gradient row to come.
template <typename Gradient, typename Visit>
auto WithMerged(const EntryList& entries, std::span<const Entry> run,
                int64_t dim, RowRunSum& sum, const Visit& visit) {
  const auto fetch_after = [&](const Entry& entry) {
    const auto* row =
        static_cast<const Gradient*>(RowOf(EntryAhead(entries, entry)));
    return [row, dim](int64_t j) { PrefetchBlock(row, j, dim); };
  };
  const auto row_of = [](const Entry& entry) {
    return static_cast<const Gradient*>(RowOf(entry));
  };
  if (run.size() == 1) {
    return visit(OneEntry<Gradient>{row_of(run.front())},
                 fetch_after(run.front()));
  }
  sum.Start();
  for (const Entry& entry : run) {
    sum.Add([row = row_of(entry)](int64_t j) { return Widen(row[j]); },
            fetch_after(entry));
  }
  return visit(EntrySum<Gradient>{sum.Finish()}, FetchNothing);
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_MERGED_ROW_H_
