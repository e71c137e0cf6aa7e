#include "kernels/cpu/row_adam.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/arithmetic.h"
#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/merge.h"
#include "kernels/cpu/merged_row.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/statistics.h"
#include "kernels/cpu/weight_update.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kStateBytes = sizeof(RowState);

// One body's share of an event, with its scratch.
template <typename Weight, typename Gradient>
class EventShare {
 public:
  EventShare(const RowTable& table, const RowAdamEvent& event,
             const EntryList& entries, bool has_fma)
      : table_(table),
        event_(event),
        may_be_in_place_(has_fma && table.dim >= kLeastColumnsInPlace &&
                         event.policy != NonFinitePolicy::kPropagate),
        entries_(entries),
        weights_(static_cast<Weight*>(table.weights)),
        sum_(table.dim),
        steps_(table.dim),
        new_row_(static_cast<size_t>(table.dim)) {}

  void Prefetch(const Entry& entry) const {
    PrefetchRow(RowOf(entry), table_.dim * int64_t{sizeof(Gradient)});
    PrefetchRow(weights_ + entry.slot * table_.dim, table_.row_bytes());
    __builtin_prefetch(table_.states + entry.slot, 1);
  }

  void Apply(std::span<const Entry> run) {
    const auto entry_count = static_cast<int64_t>(run.size());
    report_.entry_count += entry_count;
    report_.bytes_moved += entry_count * table_.dim * int64_t{sizeof(Gradient)};
    ++report_.row_visits;
    const bool updated =
        WithMerged<Gradient>(entries_, run, table_.dim, sum_,
                             [&](const auto& merged, const auto& before) {
                               return Update(run, merged, before);
                             });
    if (!updated) ++report_.untouched_row_count;
  }

  const EventReport& report() const { return report_; }

 private:
  // False, with nothing stored, where the policy asks for finite values and
  // one is not.
  template <typename Merged, typename Before>
  bool Update(std::span<const Entry> run, const Merged& g,
              const Before& before) {
    const int64_t slot = run.front().slot;
    const bool any_value = event_.policy == NonFinitePolicy::kPropagate;
    const float sum_of_squares = SumOfSquares(
        table_.dim, [&](int64_t j) { return g.Unsigned(j); }, before);
    const float mean_square = sum_of_squares / static_cast<float>(table_.dim);
    // A sum that is not finite has a mean square that is not finite.
    if (!any_value && !IsFinite(mean_square)) return false;

    const Beta2History& history = event_.history;
    RowState& state = table_.states[slot];
    report_.bytes_moved += kStateBytes;
    const float replayed = ReplaySecondMoment(
        state.second_moment, history.beta2, history.suffix_min,
        int64_t{state.last_event} + 1, history.event_count);
    const float v =
        Canonical(UpdateSecondMoment(replayed, mean_square, event_.factors));
    if (!any_value && !IsFinite(v)) return false;

    Weight* row = weights_ + slot * table_.dim;
    report_.bytes_moved += table_.row_bytes();
    const Weight* row_ahead =
        weights_ + EntryAhead(entries_, run.back()).slot * table_.dim;
    const float denominator = RowAdamDenominator(v, event_.factors);
    const auto fetch = [&](int64_t begin, int64_t end) {
      PrefetchColumns(row_ahead, begin, end, table_.dim);
    };
    if (may_be_in_place_ &&
        Magnitudes::Of(g.row, row, table_.dim)
            .AreUsual(sum_of_squares, denominator, event_.factors)) {
      UpdateInPlace(row, g, table_.dim, Quotient(denominator), event_.factors,
                    steps_, fetch);
    } else {
      const bool finite = UpdateBeside(row, g, table_.dim, denominator,
                                       event_.factors, fetch, new_row_.data());
      if (!any_value && !finite) return false;
      std::memcpy(row, new_row_.data(),
                  static_cast<size_t>(table_.row_bytes()));
    }
    state = {v, static_cast<int32_t>(history.event_count + 1)};
    report_.bytes_moved += table_.row_bytes() + kStateBytes;
    return true;
  }

  const RowTable table_;
  const RowAdamEvent& event_;
  const bool may_be_in_place_;
  const EntryList& entries_;
  Weight* const weights_;
  RowRunSum sum_;
  RowSteps steps_;
  std::vector<Weight> new_row_;
  EventReport report_;
};

template <typename Weight, typename Gradient>
void ApplyEvent(Executor& executor, const RowTable& table,
                const RowAdamEvent& event, EventReport& report) {
  const int64_t entry_bytes = table.dim * int64_t{sizeof(Gradient)};
  const EntryList entries = MergeParts(executor, event.parts, entry_bytes);
  const bool has_fma = executor.isa() != CpuIsa::kPortable;
  VectorFor(executor, entries.size, RowGrain(entry_bytes + table.row_bytes()),
            [&](int64_t begin, int64_t end) {
              EventShare<Weight, Gradient> share(table, event, entries,
                                                 has_fma);
              ForEachRun(
                  entries, begin, end,
                  [&](const Entry& entry) { share.Prefetch(entry); },
                  [&](std::span<const Entry> run) { share.Apply(run); });
              AddTo(report, share.report());
            });
}

}  // namespace

void ApplyRowAdamEvent(Executor& executor, const RowTable& table,
                       const RowAdamEvent& event, EventReport& report) {
  WithElement(table.dtype, [&]<typename Weight>() {
    WithElement(event.gradient_dtype, [&]<typename Gradient>() {
      ApplyEvent<Weight, Gradient>(executor, table, event, report);
    });
  });
}

void BringCurrent(Executor& executor, const RowTable& table,
                  const Beta2History& history, std::span<const int64_t> slots) {
  const auto count = static_cast<int64_t>(slots.size());
  VectorFor(
      executor, count, RowGrain(kStateBytes), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (i + kRowsAhead < count) {
            const int64_t ahead = slots[static_cast<size_t>(i + kRowsAhead)];
            __builtin_prefetch(table.states + ahead, 1);
          }
          RowState& state = table.states[slots[static_cast<size_t>(i)]];
          const float v = ReplaySecondMoment(
              state.second_moment, history.beta2, history.suffix_min,
              int64_t{state.last_event} + 1, history.event_count);
          state = {v, static_cast<int32_t>(history.event_count)};
        }
      });
}

void MergedStatistics(Executor& executor, std::span<const GradientPart> parts,
                      int64_t dim, DType gradient_dtype,
                      GradientStatistics& statistics) {
  const int64_t row_bytes = dim * SizeOf(gradient_dtype);
  const EntryList entries = MergeParts(executor, parts, row_bytes);
  WithElement(gradient_dtype, [&]<typename Gradient>() {
    VectorFor(
        executor, entries.size, RowGrain(row_bytes),
        [&](int64_t begin, int64_t end) {
          RowRunSum sum(dim);
          GradientStatistics share;
          ForEachRun(
              entries, begin, end,
              [&](const Entry& entry) { PrefetchRow(RowOf(entry), row_bytes); },
              [&](std::span<const Entry> run) {
                const float squares = WithMerged<Gradient>(
                    entries, run, dim, sum,
                    [&](const auto& merged, const auto& before) {
                      return SumOfSquares(dim, merged, before);
                    });
                AddRow(share, squares);
              });
          AddTo(statistics, share);
        });
  });
}

}  // namespace rowhouse::kernels::cpu
