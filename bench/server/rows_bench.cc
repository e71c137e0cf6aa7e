/// Rows over loopback, through the client library, from a server process of its
/// own: pulls, pushes, whole events. bf16 rows of 768; 128 MiB at a time,
/// spread over a table of 614 MB. The ceiling is plain TCP over the same
/// loopback.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/server/deployment.h"
#include "bench/server/loopback.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/quantile.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"

namespace rowhouse::bench {
namespace {

using client::Trainer;

constexpr int64_t kDim = 768;
constexpr int64_t kRowBytes = 2 * kDim;

int64_t TableRows() { return Size(400000, 1000); }
int64_t RowsAtOnce() { return Size((int64_t{128} << 20) / kRowBytes, 100); }

// A table of `trainer_count` trainers on the server, and a share of the rows at
// work for each.
class Rows {
 public:
  struct Share {
    std::vector<int64_t> ids;
    std::vector<uint16_t> rows;  // Pulled, or to be pushed.

    std::span<std::byte> bytes() {
      return std::as_writable_bytes(std::span(rows));
    }
  };

  explicit Rows(int64_t trainer_count, int64_t wire = 0)
      : name_(Name(trainer_count)) {
    client::TableSpec spec;
    spec.row_count = TableRows();
    spec.dim = kDim;
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.trainer_count = static_cast<int32_t>(trainer_count);
    spec.gradient_reduction = client::GradientReduction::kSum;
    const int64_t count = RowsAtOnce() / trainer_count;
    spec.max_contribution_row_count = count;
    trainers_ = TheDeployment().MakeTable(name_, spec, static_cast<Wire>(wire));

    const std::vector<uint16_t> values = NormalBf16();
    for (uint64_t rank = 0; rank < trainers_.size(); ++rank) {
      Share& share = shares_.emplace_back();
      share.ids = SpreadNumbers(count, TableRows(), rank);
      share.rows.resize(static_cast<size_t>(count * kDim));
      for (size_t i = 0; i < share.rows.size(); ++i) {
        share.rows[i] = values[i % values.size()];
      }
    }
  }
  ~Rows() {
    trainers_.clear();
    TheDeployment().cluster().DeleteTable(name_).IgnoreError();
  }

  Trainer& trainer(size_t rank) { return *trainers_[rank]; }
  Share& share(size_t rank) { return shares_[rank]; }
  size_t trainer_count() const { return trainers_.size(); }

  // All shares once over the wire.
  static Work WorkOf() {
    const auto count = static_cast<double>(RowsAtOnce());
    return {.bytes = count * kRowBytes, .items = count};
  }

 private:
  static std::string Name(int64_t trainer_count) {
    return absl::StrCat("rows-", trainer_count);
  }

  std::string name_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<Share> shares_;
};

// As `Measure`, against the wire; and the CPU seconds of both sides for each
// 10^9 bytes.
template <typename Op, typename Prepare = NothingToPrepare>
void MeasureWire(benchmark::State& state, const Work& work, Op op,
                 Prepare prepare = {}) {
  const double ceiling = LoopbackBytesPerSecond();
  const double raw_cpu = LoopbackCpuSecondsPerByte();
  const CpuSeconds before = TheDeployment().Cpu();
  if (!Time(state, op, prepare)) return;
  const CpuSeconds after = TheDeployment().Cpu();
  Report(state, work, ceiling);
  const double gigabytes =
      work.bytes * static_cast<double>(state.iterations()) * 1e-9;
  const double client = (after.client - before.client) / gigabytes;
  const double server = (after.server - before.server) / gigabytes;
  state.counters["client_cpu_s_per_gb"] = client;
  state.counters["server_cpu_s_per_gb"] = server;
  state.counters["cpu_s_per_gb"] = client + server;
  state.counters["raw_cpu_s_per_gb"] = raw_cpu * 1e9;
}

// In calls of `batch` rows, one after another; 0: all in one call.
void PullRowsOver(benchmark::State& state, Wire wire) {
  auto& rows = Kept<Rows>(1, static_cast<int64_t>(wire));
  Rows::Share& share = rows.share(0);
  const size_t batch = state.range(0) != 0 ? static_cast<size_t>(state.range(0))
                                           : share.ids.size();
  MeasureWire(state, Rows::WorkOf(), [&]() -> absl::Status {
    const std::span<const int64_t> ids(share.ids);
    for (size_t first = 0; first < ids.size(); first += batch) {
      const size_t count = std::min(batch, ids.size() - first);
      const auto pulled = rows.trainer(0).Pull(
          ids.subspan(first, count),
          share.bytes().subspan(first * kRowBytes, count * kRowBytes));
      if (!pulled.ok()) return pulled.status();
    }
    return absl::OkStatus();
  });
}
void PullRows(benchmark::State& state) { PullRowsOver(state, Wire::kTcp); }
BENCHMARK(PullRows)->Apply(Defaults)->ArgName("batch")->Arg(8192)->Arg(0);

// The ceiling is that of TCP, here too.
void PullRowsFromSocket(benchmark::State& state) {
  PullRowsOver(state, Wire::kUnixSocket);
}
BENCHMARK(PullRowsFromSocket)->Apply(Defaults)->ArgName("batch")->Arg(0);

// Calls of a few rows, one after another: the time of each. `of_ceiling` is the
// round trip of as many bytes over plain TCP, by the median.
void PullLatency(benchmark::State& state) {
  auto& rows = Kept<Rows>(1);
  Rows::Share& share = rows.share(0);
  const auto count = static_cast<size_t>(state.range(0));
  const double ceiling = LoopbackRoundTripSeconds(
      static_cast<int64_t>(count) * 8, static_cast<int64_t>(count) * kRowBytes);
  std::vector<double> seconds;
  const auto calls = static_cast<size_t>(Size(1000, 10));
  const auto pull = [&]() -> absl::Status {
    for (size_t i = 0; i < calls; ++i) {
      const size_t first = i * count % (share.ids.size() - count);
      const auto start = std::chrono::steady_clock::now();
      const auto pulled =
          rows.trainer(0).Pull({share.ids.data() + first, count},
                               share.bytes().subspan(0, count * kRowBytes));
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - start;
      if (!pulled.ok()) return pulled.status();
      seconds.push_back(took.count());
    }
    return absl::OkStatus();
  };
  if (!Time(state, pull)) return;
  const double median = Quantile(seconds, 0.5);
  state.counters["p50_us"] = median * 1e6;
  state.counters["p99_us"] = Quantile(seconds, 0.99) * 1e6;
  state.counters["ceiling_us"] = ceiling * 1e6;
  state.counters["of_ceiling"] = ceiling / median;
}
BENCHMARK(PullLatency)->Apply(Defaults)->ArgName("rows")->Arg(1)->Arg(64);

// One part, dropped again after each time.
void PushGradientsOver(benchmark::State& state, Wire wire) {
  auto& rows = Kept<Rows>(1, static_cast<int64_t>(wire));
  Trainer& trainer = rows.trainer(0);
  Rows::Share& share = rows.share(0);
  absl::Status discarded;
  MeasureWire(
      state, Rows::WorkOf(),
      [&]() -> absl::Status {
        if (!discarded.ok()) return discarded;
        return trainer.Push(trainer.next_event(), share.ids, share.bytes())
            .status();
      },
      [&] { discarded = trainer.Discard(trainer.next_event()); });
  Check(trainer.Discard(trainer.next_event()));
}
void PushGradients(benchmark::State& state) {
  PushGradientsOver(state, Wire::kTcp);
}
BENCHMARK(PushGradients)->Apply(Defaults);

void PushGradientsToSocket(benchmark::State& state) {
  PushGradientsOver(state, Wire::kUnixSocket);
}
BENCHMARK(PushGradientsToSocket)->Apply(Defaults);

absl::Status Contribute(Trainer& trainer, Rows::Share& share) {
  const int64_t event = trainer.next_event();
  const auto pushed =
      trainer.Push(event, share.ids, share.bytes(), {.seal = true});
  if (!pushed.ok()) return pushed.status();
  if (trainer.rank() == 0) {
    const absl::Status committed = trainer.Commit(
        event,
        client::RowAdamScalars{.step_size = 0.01, .beta2 = 0.95, .eps = 1e-10});
    if (!committed.ok()) return committed;
  }
  return trainer.WaitForEvent(event);
}

// A whole event: every trainer pushes its share and seals, rank 0 commits, all
// wait until it is applied.
void ApplyEvent(benchmark::State& state) {
  auto& rows = Kept<Rows>(state.range(0));
  MeasureWire(state, Rows::WorkOf(), [&] {
    std::vector<absl::Status> statuses(rows.trainer_count());
    std::vector<std::thread> threads;
    for (size_t rank = 1; rank < rows.trainer_count(); ++rank) {
      threads.emplace_back([&, rank] {
        statuses[rank] = Contribute(rows.trainer(rank), rows.share(rank));
      });
    }
    statuses[0] = Contribute(rows.trainer(0), rows.share(0));
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  });
}
BENCHMARK(ApplyEvent)->Apply(Defaults)->ArgName("trainers")->Arg(1)->Arg(2);

}  // namespace
}  // namespace rowhouse::bench
