#ifndef ROWHOUSE_KERNELS_CPU_MERGE_H_
#define ROWHOUSE_KERNELS_CPU_MERGE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/executor.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cpu {

/// One gradient row on its way to `slot`. `source` says where it is, in the
/// words of who made the entry: for parts, the row's address.
struct Entry {
  int64_t slot;
  uint64_t source;
};

/// Entries, not initialized.
struct EntryList {
  explicit EntryList(int64_t count)
      : data(std::make_unique_for_overwrite<Entry[]>(
            static_cast<size_t>(count))),
        size(count) {}

  std::unique_ptr<Entry[]> data;
  int64_t size;
};

/// Sorts by slot; entries of one slot keep their order. Entries that are in
/// order already cost one pass of reading.
void SortBySlot(Executor& executor, EntryList& entries);

/// The entries of `parts`, by slot and then in canonical order.
EntryList MergeParts(Executor& executor, std::span<const GradientPart> parts,
                     int64_t row_bytes);

inline const void* RowOf(const Entry& entry) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(entry.source));
}

/// Entries to fetch at a time: in batches, so that the address translations of
/// several, each on a page of its own in a large table, may overlap.
inline constexpr int64_t kEntriesToFetch = 32;

/// Calls `visit(run)` for each run of equal slots that starts in
/// `[begin, end)`, with all its entries, so ranges that cover a list visit each
/// run once. `prefetch(entry)` is called some entries ahead.
template <typename Prefetch, typename Visit>
void ForEachRun(const EntryList& entries, int64_t begin, int64_t end,
                Prefetch prefetch, Visit visit) {
  const Entry* list = entries.data.get();
  while (begin < end && begin > 0 && list[begin].slot == list[begin - 1].slot) {
    ++begin;
  }
  int64_t fetched = begin;
  for (int64_t first = begin; first < end;) {
    int64_t last = first;
    do {
      if (last + kEntriesToFetch / 2 >= fetched) {
        const int64_t until = std::min(entries.size, fetched + kEntriesToFetch);
        for (; fetched < until; ++fetched) prefetch(list[fetched]);
      }
      ++last;
    } while (last < entries.size && list[last].slot == list[first].slot);
    visit(std::span<const Entry>(list + first, list + last));
    first = last;
  }
}

/// The entry some rows after `entry` of the list, to fetch; near the end
/// itself.
inline const Entry& EntryAhead(const EntryList& entries, const Entry& entry) {
  constexpr int64_t kAhead = 4;
  const Entry* end = entries.data.get() + entries.size;
  return kAhead < end - &entry ? (&entry)[kAhead] : entry;
}

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_MERGE_H_
