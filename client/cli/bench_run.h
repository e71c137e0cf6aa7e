#ifndef ROWHOUSE_CLIENT_CLI_BENCH_RUN_H_
#define ROWHOUSE_CLIENT_CLI_BENCH_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/latencies.h"
#include "rowhouse/cluster.h"

namespace rowhouse::cli {

/// A load: every trainer, a thread, repeats so many pulls, so many pushes and,
/// if there are pushes, the event, each of `batch_rows` random rows.
struct BenchLoad {
  std::string table;
  int32_t trainer_count = 1;
  int64_t batch_rows = 4096;
  int32_t pull_count = 1;  ///< Of an event.
  int32_t push_count = 1;
  absl::Duration warm_up = absl::Seconds(1);  ///< Not measured.
  absl::Duration duration = absl::Seconds(10);
  absl::Duration timeout = absl::Seconds(10);  ///< Of a call.
  uint64_t seed = 1;
};

/// Calls of one kind.
struct OperationReport {
  Latencies latencies;
  int64_t row_count = 0;
  int64_t size_bytes = 0;  ///< Of rows or gradients, without ids.

  void Merge(const OperationReport& other);
};

struct BenchReport {
  absl::Duration measured;
  OperationReport pull;
  OperationReport push;
  OperationReport event;   ///< From a trainer's seal to its application.
  double cpu_seconds = 0;  ///< Of this process, system time too.

  int64_t size_bytes() const { return pull.size_bytes + push.size_bytes; }
};

/// How far a run has come.
struct BenchProgress {
  absl::Duration elapsed;
  int64_t size_bytes = 0;
};

/// Runs the load on a table that has as many trainers and room for their rows.
/// `watch` is called some times a second.
///
/// Errors: the first of a trainer's calls, which ends those of all others too.
absl::StatusOr<BenchReport> RunBench(
    client::Cluster& cluster, const BenchLoad& load,
    const std::function<void(const BenchProgress&)>& watch);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_BENCH_RUN_H_
