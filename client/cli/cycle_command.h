#ifndef ROWHOUSE_CLIENT_CLI_CYCLE_COMMAND_H_
#define ROWHOUSE_CLIENT_CLI_CYCLE_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "client/cli/bench_report.h"
#include "client/cli/command.h"
#include "client/cli/cycle_run.h"

namespace rowhouse::cli {

/// Of `bench --cycle`.
struct CycleFlags {
  bool cycle = false;
  CycleLoad load;
  int64_t step_count = 4;
  bool zipf = false;
  bool no_prefetch = false;
  double model_milliseconds = 0;
  int64_t device_index = -1;  ///< Below 0: none.
  std::string timeline;
  double timeline_milliseconds = 0;
};

/// Adds `--cycle`, which excludes the options `others`, and what it needs.
void AddCycleFlags(CLI::App& command, CycleFlags& flags,
                   const std::vector<CLI::Option*>& others);

/// Runs cycles on a table of its own, prints their stages, and writes the
/// time line that was asked for. The value is the exit code.
absl::StatusOr<int> RunCycleBench(const Context& context,
                                  const CycleFlags& flags, BenchTable table,
                                  int32_t trainer_count, bool replace);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CYCLE_COMMAND_H_
