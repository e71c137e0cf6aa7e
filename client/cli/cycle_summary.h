#ifndef ROWHOUSE_CLIENT_CLI_CYCLE_SUMMARY_H_
#define ROWHOUSE_CLIENT_CLI_CYCLE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/cycle_run.h"
#include "client/cli/latencies.h"

namespace rowhouse::cli {

/// What one stage took in each measured cycle of each trainer.
struct StageSummary {
  std::string name;
  bool in_flight = false;    ///< Beside the trainer's own thread.
  Latencies latencies;       ///< A cycle's, of all shards.
  absl::Duration total;      ///< Of all cycles.
  absl::Duration hidden;     ///< Of that, while the trainer was at work.
  int64_t row_count = 0;     ///< Of all cycles.
  int64_t bytes_of_row = 0;  ///< 0: no rows are moved.

  int64_t size_bytes() const { return row_count * bytes_of_row; }
};

struct CycleSummary {
  Latencies cycles;
  std::vector<StageSummary> stages;  ///< In the order of a cycle.
  /// What travels for a pull, ids and rows, without the wait for the event.
  StageSummary pull;
  absl::Duration work;    ///< Of all cycles, what the trainers' threads worked.
  absl::Duration total;   ///< All cycles of all trainers.
  int64_t row_count = 0;  ///< Pulled in these.
  int64_t pull_count = 0;        ///< Calls.
  int64_t one_sided_pulls = 0;   ///< Of them.
  int64_t push_count = 0;        ///< Calls that moved rows.
  int64_t one_sided_pushes = 0;  ///< Of them.
};

/// `row_bytes`, `gradient_bytes`: of the table's rows.
CycleSummary Summarize(const CycleTrace& trace, int64_t row_bytes,
                       int64_t gradient_bytes);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CYCLE_SUMMARY_H_
