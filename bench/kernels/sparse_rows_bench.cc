/// Gather and row-Adam event on the CPU backend.
///
/// The rows at work are spread at random over the whole table, whose pages were
/// touched before. The same number of rows in a table eight times as large must
/// take about the same time: an event costs what it touches, not what there is.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "bench/kernels/ceiling.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {
namespace {

constexpr int64_t kTouchedRows = 393216;

Backend& CpuBackend() {
  static Backend* const backend =
      MakeBackend(BackendOptions()).value().release();
  return *backend;
}

// A table whose every page was written, and distinct rows of it.
class Workload {
 public:
  Workload(int64_t row_count, int64_t dim, int64_t touched_rows)
      : weights_(Allocate(row_count * dim * 2)),
        second_moment_(Allocate(row_count * 4)),
        last_event_(Allocate(row_count * 4)),
        slots_(Allocate(touched_rows * 8)),
        gradients_(Allocate(touched_rows * dim * 2)),
        out_(Allocate(touched_rows * dim * 2)),
        history_(Allocate(4)),
        touched_rows_(touched_rows) {
    table_.weights = weights_.data();
    table_.second_moment = second_moment_.as<float>();
    table_.last_event = last_event_.as<int32_t>();
    table_.row_count = row_count;
    table_.dim = dim;
    CpuBackend().InitializeRows(table_, {}, false).IgnoreError();
    std::memset(out_.data(), 0, static_cast<size_t>(out_.size_bytes()));
    FillSlots();
    FillGradients();
  }

  const RowTable& table() const { return table_; }
  std::span<const int64_t> slots() const {
    return {slots_.as<int64_t>(), static_cast<size_t>(touched_rows_)};
  }
  void* out() const { return out_.data(); }

  void SortSlots() {
    int64_t* slots = slots_.as<int64_t>();
    std::sort(slots, slots + touched_rows_);
  }

  EventReport ApplyEvent() {
    const GradientPart part = {slots_.as<int64_t>(), gradients_.data(),
                               touched_rows_};
    RowAdamEvent event;
    event.parts = {&part, 1};
    event.factors =
        NarrowScalars(RowAdamScalars{0.1, 0.001, 0.95, 1e-10, 1.0}, 1);
    event.history = {history_.as<float>(), history_.as<float>(), 0};
    EventReport report;
    CpuBackend().ApplyRowAdamEvent(table_, event, report).IgnoreError();
    return report;
  }

 private:
  static Buffer Allocate(int64_t size_bytes) {
    return CpuBackend().Allocate(size_bytes).value();
  }

  // One row at random from each of equal shares of the table, shuffled.
  void FillSlots() {
    std::mt19937_64 random(1);
    int64_t* slots = slots_.as<int64_t>();
    const int64_t share = table_.row_count / touched_rows_;
    for (int64_t i = 0; i < touched_rows_; ++i) {
      slots[i] = i * share +
                 static_cast<int64_t>(random() % static_cast<uint64_t>(share));
    }
    std::shuffle(slots, slots + touched_rows_, random);
  }

  void FillGradients() {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    auto* to = gradients_.as<uint16_t>();
    for (int64_t i = 0; i < touched_rows_ * table_.dim; ++i) {
      to[i] = FloatToBf16(normal(random));
    }
  }

  Buffer weights_;
  Buffer second_moment_;
  Buffer last_event_;
  Buffer slots_;
  Buffer gradients_;
  Buffer out_;
  Buffer history_;
  int64_t touched_rows_;
  RowTable table_;
};

// Each table is made once and kept until another is asked for.
Workload& WorkloadOf(const benchmark::State& state, int64_t touched_rows) {
  static std::unique_ptr<Workload> workload;
  const int64_t rows = state.range(0) * 1000000;
  const int64_t dim = state.range(1);
  if (workload == nullptr || workload->table().row_count != rows ||
      workload->table().dim != dim) {
    workload.reset();
    workload = std::make_unique<Workload>(rows, dim, touched_rows);
  }
  return *workload;
}

void Gather(benchmark::State& state) {
  Workload& workload = WorkloadOf(state, kTouchedRows);
  for (auto _ : state) {
    CpuBackend()
        .GatherRows(workload.table(), workload.slots(), workload.out())
        .IgnoreError();
  }
  state.SetItemsProcessed(state.iterations() * kTouchedRows);
  SetBytesMoved(state, state.iterations() * kTouchedRows * 2 *
                           workload.table().row_bytes());
}

// Slots in random order, which the event must sort.
void Event(benchmark::State& state) {
  Workload& workload = WorkloadOf(state, kTouchedRows);
  int64_t bytes = 0;
  for (auto _ : state) bytes += workload.ApplyEvent().bytes_moved;
  state.SetItemsProcessed(state.iterations() * kTouchedRows);
  SetBytesMoved(state, bytes);
}

// A sorted want list, as one trainer sends it.
void SortedEvent(benchmark::State& state) {
  WorkloadOf(state, kTouchedRows).SortSlots();
  Event(state);
}

void Tables(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"mrows", "dim"})
      ->Args({10, 32})
      ->Args({80, 32})
      ->Args({1, 768})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

BENCHMARK(Gather)->Apply(Tables);
BENCHMARK(Event)->Apply(Tables);
BENCHMARK(SortedEvent)->Apply(Tables);

}  // namespace
}  // namespace rowhouse::kernels
