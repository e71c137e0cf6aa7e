/// Rows of a sparse table: initialized, gathered, written, brought current,
/// digested. bf16; row-Adam events are in row_adam_bench.cc.

#include <cstdint>
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

using kernels::Beta2History;
using kernels::Initializer;
using kernels::RowState;

constexpr double kStateBytes = 8;  // Second moment and last event of a row.
constexpr double kSlotBytes = 8;

// Of a type of its own, so that what is gathered into `rows` is no other
// case's gradients.
struct PulledTable : TouchedTable {
  using TouchedTable::TouchedTable;
};

// Rows in random order, as a pull asks for them. The same number of rows from
// a table eight times as large must take about the same time.
void GatherRows(benchmark::State& state) {
  auto& table = Kept<PulledTable>(state.range(0), state.range(1));
  const auto count = static_cast<double>(table.shuffled.count());
  Measure(state, {.bytes = count * 2 * table.row_bytes(), .items = count}, [&] {
    return TheBackend().GatherRows(table.view(), table.shuffled.span(),
                                   table.rows.data());
  });
}
BENCHMARK(GatherRows)
    ->Apply(Defaults)
    ->ArgNames({"krows", "dim"})
    ->Args({5000, 32})
    ->Args({40000, 32})
    ->Args({1000, 768});

// To the places of another order, as a pull from one of several shards lands.
void GatherRowsTo(benchmark::State& state) {
  auto& table = Kept<PulledTable>(1000, 768);
  const Array<int64_t> positions(
      Shuffled(SpreadNumbers(table.touched(), table.touched(), 7)));
  const auto count = static_cast<double>(table.touched());
  Measure(
      state,
      {.bytes = count * (2 * table.row_bytes() + kSlotBytes), .items = count},
      [&] {
        return TheBackend().GatherRowsTo(table.view(), table.shuffled.span(),
                                         positions.span(), table.rows.data());
      });
}
BENCHMARK(GatherRowsTo)->Apply(Defaults);

void WriteRows(benchmark::State& state) {
  auto& table = Kept<PulledTable>(1000, 768);
  const auto count = static_cast<double>(table.touched());
  Measure(state, {.bytes = count * 2 * table.row_bytes(), .items = count}, [&] {
    return TheBackend().WriteRows(table.view(), 0, table.touched(),
                                  table.rows.data());
  });
}
BENCHMARK(WriteRows)->Apply(Defaults);

// Of all rows of a table of which every one is `missed` events behind.
void BringCurrent(benchmark::State& state) {
  const int64_t missed = state.range(0);
  auto& table = Kept<PulledTable>(1000, 768);
  const Array<float> beta2(missed + 2, {0.95F});
  const Array<RowState> states(table.view().row_count, {{1.0F, 1}});
  const Beta2History history = {beta2.data(), beta2.data(), missed + 1};
  const auto count = static_cast<double>(table.sorted.count());
  Measure(
      state, {.bytes = count * (kSlotBytes + 2 * kStateBytes), .items = count},
      [&] {
        return TheBackend().BringCurrent(table.view(), history,
                                         table.sorted.span());
      },
      [&] { table.states().CopyFrom(states); });
}
BENCHMARK(BringCurrent)->Apply(Defaults)->ArgName("missed")->Arg(1)->Arg(64);

void Digest(benchmark::State& state) {
  auto& table = Kept<PulledTable>(1000, 768);
  const Array<float> beta2(1);
  const Beta2History history = {beta2.data(), beta2.data(), 0};
  uint64_t sum = 0;
  const double bytes = table.row_count() * (table.row_bytes() + kStateBytes);
  Measure(state, {.bytes = bytes, .items = table.row_count()},
          [&] { return TheBackend().Digest(table.view(), history, sum); });
}
BENCHMARK(Digest)->Apply(Defaults);

// Last: it leaves other weights behind.
void InitializeRows(benchmark::State& state, Initializer::Kind kind) {
  auto& table = Kept<PulledTable>(1000, 768);
  const Initializer initializer = {.kind = kind, .seed = 1, .bound = 0.02F};
  const double bytes = table.row_count() * (table.row_bytes() + kStateBytes);
  Measure(state, {.bytes = bytes, .items = table.row_count()}, [&] {
    return TheBackend().InitializeRows(table.view(), initializer, false);
  });
}
BENCHMARK_CAPTURE(InitializeRows, zeros, Initializer::Kind::kZeros)
    ->Apply(Defaults);
BENCHMARK_CAPTURE(InitializeRows, uniform, Initializer::Kind::kUniform)
    ->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
