/// Many clients that pull at once, each over connections of its own: whether
/// all are served, and alike.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "bench/server/deployment.h"
#include "bench/server/loopback.h"
#include "bench/support/check.h"
#include "bench/support/inputs.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "rowhouse/trainer.h"
#include "rowhouse/types.h"

namespace rowhouse::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDim = 768;
constexpr int64_t kRowBytes = 2 * kDim;
constexpr char kTable[] = "clients";

int64_t TableRows() { return Size(400000, 1000); }
int64_t RowsOfPull() { return Size((int64_t{4} << 20) / kRowBytes, 10); }
std::chrono::milliseconds Span() {
  return std::chrono::milliseconds(Size(2000, 20));
}

class Clients {
 public:
  explicit Clients(int32_t count) {
    client::TableSpec spec;
    spec.row_count = TableRows();
    spec.dim = kDim;
    spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
    spec.trainer_count = count;
    spec.gradient_reduction = client::GradientReduction::kSum;
    spec.max_contribution_row_count = 1;
    spec.max_pull_bytes = RowsOfPull() * kRowBytes;
    client::Cluster& admin = TheDeployment().cluster();
    Check(admin.CreateTable(kTable, spec).status());
    client::ClusterOptions options;
    options.addresses = {TheDeployment().address(Wire::kTcp)};
    for (int32_t rank = 0; rank < count; ++rank) {
      clusters_.push_back(Check(client::Cluster::Connect(options)));
      trainers_.push_back(
          Check(client::Trainer::Join(*clusters_.back(), kTable, rank)));
    }
  }
  ~Clients() {
    trainers_.clear();
    TheDeployment().cluster().DeleteTable(kTable).IgnoreError();
  }

  // Pulls until `end`; returns how often.
  absl::StatusOr<int64_t> PullUntil(Clock::time_point end, size_t rank) {
    const std::vector<int64_t> ids =
        SpreadNumbers(RowsOfPull(), TableRows(), rank);
    std::vector<uint16_t> rows(ids.size() * kDim);
    int64_t pulls = 0;
    while (Clock::now() < end) {
      const auto pulled =
          trainers_[rank]->Pull(ids, std::as_writable_bytes(std::span(rows)));
      if (!pulled.ok()) return pulled.status();
      ++pulls;
    }
    return pulls;
  }

 private:
  std::vector<std::unique_ptr<client::Cluster>> clusters_;
  std::vector<std::unique_ptr<client::Trainer>> trainers_;
};

// `least` and `most`: pulls that one client finished in the time, and
// `fairness` is how they compare; a pull that fails ends the case.
void ClientsAtOnce(benchmark::State& state) {
  const auto count = static_cast<size_t>(Size(state.range(0), 4));
  Clients clients(static_cast<int32_t>(count));
  const double ceiling = LoopbackBytesPerSecond();
  std::vector<absl::StatusOr<int64_t>> pulls;
  double seconds = 0;
  const bool timed = Time(state, [&]() -> absl::Status {
    pulls.assign(count, int64_t{0});
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < count; ++rank) {
      threads.emplace_back(
          [&, rank] { pulls[rank] = clients.PullUntil(start + Span(), rank); });
    }
    for (std::thread& thread : threads) thread.join();
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (const auto& done : pulls) {
      if (!done.ok()) return done.status();
    }
    return absl::OkStatus();
  });
  if (!timed) return;
  int64_t total = 0;
  int64_t least = *pulls[0];
  int64_t most = 0;
  for (const auto& done : pulls) {
    total += *done;
    least = std::min(least, *done);
    most = std::max(most, *done);
  }
  const auto bytes = static_cast<double>(total * RowsOfPull()) * kRowBytes;
  state.counters["bytes"] = bytes;
  state.counters["bytes_per_second"] = bytes / seconds;
  state.counters["ceiling"] = ceiling;
  state.counters["of_ceiling"] = bytes / seconds / ceiling;
  state.counters["least"] = static_cast<double>(least);
  state.counters["most"] = static_cast<double>(most);
  state.counters["fairness"] = static_cast<double>(most) /
                               static_cast<double>(std::max<int64_t>(least, 1));
  state.counters["server_mib"] = TheDeployment().ServerMemoryMib();
}
BENCHMARK(ClientsAtOnce)
    ->Apply(Defaults)
    ->ArgName("clients")
    ->Arg(64)
    ->Iterations(1);

}  // namespace
}  // namespace rowhouse::bench
