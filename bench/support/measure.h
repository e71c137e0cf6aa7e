#ifndef ROWHOUSE_BENCH_SUPPORT_MEASURE_H_
#define ROWHOUSE_BENCH_SUPPORT_MEASURE_H_

#include <type_traits>

#include "absl/status/status.h"
#include "bench/support/ceiling.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"

namespace rowhouse::bench {

/// What one iteration must do, however it is done.
struct Work {
  double bytes = 0;  ///< Read and written, each datum once.
  double flops = 0;  ///< Of products; where set, they are the measure.
  double items = 0;  ///< Rows, entries or tokens.
};

/// Counters of a case: `bytes` or `flops` an iteration, their rate,
/// `items_per_second`, and `of_ceiling`, the share that the rate is of
/// `ceiling` (a second). A ceiling of 0 is not known, and so no share.
inline void Report(benchmark::State& state, const Work& work, double ceiling) {
  using benchmark::Counter;
  const bool has_flops = work.flops > 0;
  const double amount = has_flops ? work.flops : work.bytes;
  const auto rate = Counter::kIsIterationInvariantRate;
  if (amount > 0) {
    state.counters[has_flops ? "flops" : "bytes"] = amount;
    state.counters[has_flops ? "flops_per_second" : "bytes_per_second"] =
        Counter(amount, rate);
    if (ceiling > 0) {
      state.counters["ceiling"] = ceiling;
      state.counters["of_ceiling"] = Counter(amount / ceiling, rate);
    }
  }
  if (work.items > 0) {
    state.counters["items_per_second"] = Counter(work.items, rate);
  }
}

/// For `Measure`: nothing to put back.
struct NothingToPrepare {};

/// Times `op`, which returns a status, and the wait for its end. Before each
/// time `prepare` puts back, unmeasured, what `op` uses up. False after a
/// fault, which is then the case's.
template <typename Op, typename Prepare = NothingToPrepare>
bool Time(benchmark::State& state, Op op, Prepare prepare = {}) {
  for (auto _ : state) {
    if constexpr (!std::is_same_v<Prepare, NothingToPrepare>) {
      state.PauseTiming();
      prepare();
      state.ResumeTiming();
    }
    absl::Status status = op();
    if (status.ok()) status = TheBackend().Synchronize();
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return false;
    }
  }
  return true;
}

/// Times an operation of the backend and reports it against the copy's rate or,
/// where it has FLOPs, the bare product's.
template <typename Op, typename Prepare = NothingToPrepare>
void Measure(benchmark::State& state, const Work& work, Op op,
             Prepare prepare = {}) {
  const double ceiling =
      work.flops > 0 ? GemmFlopsPerSecond() : CopyBytesPerSecond();
  if (Time(state, op, prepare)) Report(state, work, ceiling);
}

/// Fails a case that did other work than it claims, say none: its figures would
/// be too good.
inline void Require(benchmark::State& state, bool holds, const char* claim) {
  if (!holds) state.SkipWithError(claim);
}

/// Wall time in milliseconds, for every case of the suite.
inline void Defaults(benchmark::internal::Benchmark* bench) {
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_MEASURE_H_
