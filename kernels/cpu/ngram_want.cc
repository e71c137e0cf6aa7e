#include "kernels/cpu/ngram_want.h"

#include <cstddef>

#include "kernels/cpu/merge.h"
#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cpu {
namespace {

EntryList RowIdsOf(Executor& executor,
                   std::span<const std::span<const int32_t>> steps,
                   const NgramLayout& layout) {
  constexpr int64_t kGrain = 4096;
  int64_t token_count = 0;
  for (const std::span<const int32_t> tokens : steps) {
    token_count += std::ssize(tokens);
  }
  EntryList entries(2 * token_count);
  Entry* to = entries.data.get();
  for (const std::span<const int32_t> tokens : steps) {
    executor.ParallelFor(
        std::ssize(tokens), kGrain, [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) {
            to[2 * t] = {BigramRowId(tokens.data(), t, layout), 0};
            to[2 * t + 1] = {TrigramRowId(tokens.data(), t, layout), 0};
          }
        });
    to += 2 * std::ssize(tokens);
  }
  return entries;
}

}  // namespace

int64_t NgramWantList(Executor& executor,
                      std::span<const std::span<const int32_t>> steps,
                      int64_t table_row_count, std::span<int64_t> want) {
  EntryList entries =
      RowIdsOf(executor, steps, NgramLayout::Of(table_row_count));
  SortBySlot(executor, entries);
  size_t count = 0;
  int64_t last = -1;
  for (int64_t i = 0; i < entries.size; ++i) {
    const int64_t row_id = entries.data[i].slot;
    if (row_id == last) continue;
    last = row_id;
    if (count < want.size()) want[count] = row_id;
    ++count;
  }
  return static_cast<int64_t>(count);
}

}  // namespace rowhouse::kernels::cpu
