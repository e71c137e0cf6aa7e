/// Row-Adam events on a sparse bf16 table, and their statistics.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/kernels/sparse_table.h"
#include "bench/support/array.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::bench {
namespace {

using kernels::GradientPart;

// What an event moves: the entries' gradients, and of each distinct row its
// weights and state, read and written.
Work EventWork(int64_t entries, int64_t rows, int64_t dim) {
  const auto wide = static_cast<double>(dim);
  return {.bytes = static_cast<double>(entries) * 2 * wide +
                   static_cast<double>(rows) * (4 * wide + 16),
          .items = static_cast<double>(entries)};
}

// The last event visited so many rows, and changed them all.
void RequireVisited(benchmark::State& state, const kernels::EventReport& report,
                    int64_t rows) {
  Require(state, report.row_visits == rows && report.untouched_row_count == 0,
          "every row changes");
}

absl::Status Apply(const SparseTable& table,
                   std::span<const GradientPart> parts,
                   const Array<float>& beta2, kernels::EventReport& report) {
  kernels::RowAdamEvent event;
  event.parts = parts;
  event.factors =
      NarrowScalars(kernels::RowAdamScalars{0.1, 0.001, 0.95, 1e-10, 1.0}, 1);
  event.history = {beta2.data(), beta2.data(), 0};
  return TheBackend().ApplyRowAdamEvent(table.view(), event, report);
}

// One trainer's event. Its slots are sorted, as the client sends them, or in
// random order, which the event must sort. The same number of rows of a table
// eight times as large must take about the same time.
void ApplyRowAdamEvent(benchmark::State& state, bool sorted) {
  auto& table = Kept<TouchedTable>(state.range(0), state.range(1));
  const Array<int64_t>& slots = sorted ? table.sorted : table.shuffled;
  const GradientPart part = {slots.data(), table.rows.data(), slots.count()};
  const Array<float> beta2(1);
  kernels::EventReport report;
  Measure(state, EventWork(slots.count(), slots.count(), state.range(1)), [&] {
    report = {};
    return Apply(table, {&part, 1}, beta2, report);
  });
  RequireVisited(state, report, slots.count());
}

void Tables(benchmark::internal::Benchmark* bench) {
  bench->Apply(Defaults)
      ->ArgNames({"krows", "dim"})
      ->Args({5000, 32})
      ->Args({40000, 32})
      ->Args({1000, 768});
}
BENCHMARK_CAPTURE(ApplyRowAdamEvent, sorted, true)->Apply(Tables);
BENCHMARK_CAPTURE(ApplyRowAdamEvent, unsorted, false)->Apply(Tables);

// The event of eight trainers: each an eighth of the entries, sorted, of rows
// that on average one other trainer has too.
struct TrainersEvent : SparseTable {
  static constexpr int64_t kTrainers = 8;
  static constexpr int64_t kDim = 768;

  TrainersEvent() : SparseTable(1000, kDim) {
    const int64_t share = touched() / kTrainers;
    const std::vector<int64_t> pool =
        SpreadNumbers(touched() / 2, view().row_count, 1);
    const std::vector<uint16_t> gradients = NormalBf16();
    std::vector<int64_t> all;
    for (int64_t rank = 0; rank < kTrainers; ++rank) {
      std::vector<int64_t> wanted =
          SpreadNumbers(share, static_cast<int64_t>(pool.size()),
                        static_cast<uint64_t>(rank));
      for (int64_t& slot : wanted) slot = pool[static_cast<size_t>(slot)];
      all.insert(all.end(), wanted.begin(), wanted.end());
      slots.emplace_back(wanted);
      rows.emplace_back(share * kDim, gradients);
      parts.push_back({slots.back().data(), rows.back().data(), share});
    }
    entry_count = static_cast<int64_t>(all.size());
    distinct_count = CountDistinct(std::move(all));
  }

  std::vector<Array<int64_t>> slots;
  std::vector<Array<uint16_t>> rows;
  std::vector<GradientPart> parts;
  int64_t entry_count = 0;
  int64_t distinct_count = 0;
};

void ApplyRowAdamEventOf8Trainers(benchmark::State& state) {
  auto& event = Kept<TrainersEvent>();
  const Array<float> beta2(1);
  kernels::EventReport report;
  state.counters["distinct_rows"] = static_cast<double>(event.distinct_count);
  Measure(state, EventWork(event.entry_count, event.distinct_count, event.kDim),
          [&] {
            report = {};
            return Apply(event, event.parts, beta2, report);
          });
  RequireVisited(state, report, event.distinct_count);
}
BENCHMARK(ApplyRowAdamEventOf8Trainers)
    ->Name("ApplyRowAdamEvent/8_trainers")
    ->Apply(Defaults);

void MergedStatistics(benchmark::State& state) {
  auto& event = Kept<TrainersEvent>();
  kernels::GradientStatistics statistics;
  const auto count = static_cast<double>(event.entry_count);
  Measure(state, {.bytes = count * 2 * event.kDim, .items = count}, [&] {
    return TheBackend().MergedStatistics(event.parts, event.kDim,
                                         kernels::DType::kBf16, statistics);
  });
  Require(state,
          statistics.row_count > 0 && statistics.non_finite_row_count == 0 &&
              statistics.row_count % event.distinct_count == 0,
          "every row is in the sum");
}
BENCHMARK(MergedStatistics)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
