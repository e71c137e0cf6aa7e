#include "kernels/cpu/embedding_gradient.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/arithmetic.h"
#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/merge.h"
#include "kernels/cpu/merged_row.h"
#include "kernels/cpu/row_ops.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kSlotGrain = 8192;

// The entries of `gradient`, by slot and then by position.
EntryList SortedEntries(Executor& executor, const EmbeddingGradient& gradient) {
  const auto count = static_cast<int64_t>(gradient.slots.size());
  const int64_t stride_bytes = gradient.row_stride * SizeOf(gradient.dtype);
  const auto rows = reinterpret_cast<uintptr_t>(gradient.rows);
  EntryList entries(count);
  Entry* to = entries.data.get();
  VectorFor(executor, count, kSlotGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to[i] = {gradient.slots[static_cast<size_t>(i)],
               rows + static_cast<uintptr_t>(i * stride_bytes)};
    }
  });
  SortBySlot(executor, entries);
  return entries;
}

// `main = RNE(fl32(main + r))`, `r` being the merged gradient rounded to its
// type, for columns `[begin, end)`.
template <typename Main, typename Merged>
void AddRounded(const Merged& merged, int64_t begin, int64_t end,
                Main* __restrict main) {
  for (int64_t j = begin; j < end; ++j) {
    main[j] = Narrow<Main>(Widen(main[j]) + merged.Rounded(j));
  }
}

template <typename Main, typename Gradient>
void Accumulate(Executor& executor, const MainGrad& main_grad,
                const EntryList& entries) {
  const int64_t dim = main_grad.dim;
  const int64_t entry_bytes = dim * int64_t{sizeof(Gradient)};
  const int64_t main_bytes = dim * int64_t{sizeof(Main)};
  const auto main_row = [&](int64_t slot) {
    return static_cast<Main*>(main_grad.data) + slot * main_grad.row_stride;
  };
  VectorFor(executor, entries.size, RowGrain(entry_bytes + main_bytes),
            [&](int64_t begin, int64_t end) {
              RowRunSum sum(dim);
              ForEachRun(
                  entries, begin, end,
                  [&](const Entry& entry) {
                    PrefetchRow(RowOf(entry), entry_bytes);
                    PrefetchRow(main_row(entry.slot), main_bytes);
                  },
                  [&](std::span<const Entry> run) {
                    WithMerged<Gradient>(
                        entries, run, dim, sum,
                        [&](const auto& merged, const auto& before) {
                          Main* main = main_row(run.front().slot);
                          const Main* ahead =
                              main_row(EntryAhead(entries, run.back()).slot);
                          for (int64_t j = 0; j < dim; j += kBlockColumns) {
                            before(j);
                            PrefetchBlock(ahead, j, dim);
                            AddRounded(merged, j,
                                       std::min(dim, j + kBlockColumns), main);
                          }
                        });
                  });
            });
}

}  // namespace

void AccumulateEmbeddingGradient(Executor& executor, const MainGrad& main_grad,
                                 const EmbeddingGradient& gradient) {
  const EntryList entries = SortedEntries(executor, gradient);
  WithDenseElement(main_grad.dtype, [&]<typename Main>() {
    WithDenseElement(gradient.dtype, [&]<typename Gradient>() {
      Accumulate<Main, Gradient>(executor, main_grad, entries);
    });
  });
}

}  // namespace rowhouse::kernels::cpu
