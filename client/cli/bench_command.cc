// A load for users' own clusters, on a table of its own.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/bench_report.h"
#include "client/cli/bench_run.h"
#include "client/cli/bench_table.h"
#include "client/cli/checks.h"
#include "client/cli/command.h"
#include "client/cli/cycle_command.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse bench\n"
    "  rowhouse bench --rows=10M --dim=768 --batch=16Ki --trainers=4 "
    "--seconds=30\n"
    "  rowhouse bench --pushes=0 --json     reads alone\n"
    "  rowhouse bench --cycle --rows=10M --dim=768 --timeline=cycle.svg\n";

struct Flags {
  BenchLoad load;
  BenchTable table;
  CycleFlags cycle;
  int64_t trainer_count = 1;
  double seconds = 10;
  double warm_up_seconds = 1;
  bool replace = false;
};

client::TableSpec SpecOf(const Flags& flags) {
  client::TableSpec spec = SpecOf(flags.table);
  spec.trainer_count = flags.load.trainer_count;
  const int32_t pushes = std::max(flags.load.push_count, 1);
  spec.max_contribution_row_count = flags.load.batch_rows * pushes;
  spec.max_part_count = pushes;
  // A pull is one call; and no more is reserved for it.
  spec.max_pull_bytes =
      std::max(flags.load.batch_rows * spec.dim * SizeOf(spec.row_dtype),
               int64_t{1} << 20);
  return spec;
}

absl::StatusOr<BenchReport> Measure(client::Cluster& cluster,
                                    const Context& context,
                                    const BenchLoad& load) {
  Progress progress("bench",
                    absl::ToInt64Milliseconds(load.warm_up + load.duration),
                    Progress::Unit::kMilliseconds, StderrScreen(context.quiet));
  return RunBench(cluster, load, [&](const BenchProgress& now) {
    if (now.elapsed > absl::ZeroDuration()) {
      const double rate = static_cast<double>(now.size_bytes) * 1e-9 /
                          absl::ToDoubleSeconds(now.elapsed);
      progress.Update(absl::ToInt64Milliseconds(now.elapsed),
                      Figure(rate) + " GB/s");
    }
  });
}

// Prints what came of the load; returns the exit code.
int Show(const Context& context, const Flags& flags,
         const BenchReport& report) {
  if (report.size_bytes() == 0) {
    std::cerr << "rowhouse: no call began within the measured time; give more "
                 "--seconds\n";
    return kRefused;
  }
  if (context.json) {
    PrintJson(ReportJson(flags.table, flags.load, report));
  } else {
    Print(ReportText(flags.table, flags.load, report, UsesColor()));
  }
  return kOk;
}

absl::StatusOr<int> Run(const Context& context, Flags flags) {
  if (flags.cycle.cycle) {
    return RunCycleBench(context, flags.cycle, flags.table,
                         static_cast<int32_t>(flags.trainer_count),
                         flags.replace);
  }
  BenchLoad& load = flags.load;
  load.table = context.table;
  load.trainer_count = static_cast<int32_t>(flags.trainer_count);
  load.duration = absl::Seconds(flags.seconds);
  load.warm_up = absl::Seconds(flags.warm_up_seconds);
  load.timeout = context.connection.timeout();
  if (load.pull_count + load.push_count == 0) {
    return BadArgument("--pulls=0 and --pushes=0, wanted one above 0");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  flags.table.server_count = static_cast<int32_t>(cluster->servers().size());
  return OnOwnTable(
      context, *cluster, {SpecOf(flags), flags.replace},
      [&cluster] { cluster->CancelCalls(); },
      [&]() -> absl::StatusOr<int> {
        ROWHOUSE_ASSIGN_OR_RETURN(const BenchReport report,
                                  Measure(*cluster, context, load));
        return Show(context, flags, report);
      });
}

void AddTableFlags(CLI::App& command, Flags& flags) {
  AddCount(command, "--rows", flags.table.row_count,
           "Rows of the table; 1Mi when not given", 1);
  AddCount(command, "--dim", flags.table.dim, "Elements of a row; 128", 1,
           1 << 19);
  command
      .add_option("--dtype", flags.table.dtype, "Of rows and gradients; bf16")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->type_name("NAME");
  AddCount(command, "--trainers", flags.trainer_count,
           "Trainers, each a thread; 1", 1, 4096);
  command.add_flag("--replace", flags.replace,
                   "Deletes a table of this name that is there");
}

// Returns those of the load alone.
std::vector<CLI::Option*> AddLoadFlags(CLI::App& command, Flags& flags) {
  return {&AddCount(command, "--batch", flags.load.batch_rows,
                    "Rows of a pull or push, random; 4Ki", 1, 1 << 24),
          command
              .add_option("--pulls", flags.load.pull_count,
                          "Pulls of a trainer in an event; 1")
              ->check(CLI::Range(0, 1 << 16))
              ->type_name("COUNT"),
          command
              .add_option("--pushes", flags.load.push_count,
                          "Pushes of a trainer in an event; 1. 0: no events")
              ->check(CLI::Range(0, 1 << 16))
              ->type_name("COUNT"),
          command.add_option("--seconds", flags.seconds, "Measured time; 10")
              ->check(CLI::Range(0.1, 1e6))
              ->type_name("SECONDS"),
          command
              .add_option("--warm-up", flags.warm_up_seconds,
                          "Time before, not measured; 1")
              ->check(CLI::Range(0.0, 1e6))
              ->type_name("SECONDS")};
}

}  // namespace

void AddBench(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = AddCommand(
      app, context, "bench",
      "Loads the cluster with pulls, pushes and events, or with whole training "
      "cycles, on a table of its own, which it deletes at the end",
      kExamples, [&context, flags] { return Run(context, *flags); });
  command
      .add_option_function<std::string>(
          "--table",
          [&context](const std::string& name) { context.table = name; },
          "The table's name; rowhouse-bench when not given")
      ->check(CheckTableName)
      ->type_name("NAME");
  command.preparse_callback([&context](size_t) {
    if (context.table.empty()) context.table = "rowhouse-bench";
  });
  AddTableFlags(command, *flags);
  command.add_flag("--no-one-sided", context.connection.no_one_sided,
                   "Rows travel over gRPC, whatever else servers offer");
  AddCycleFlags(command, flags->cycle, AddLoadFlags(command, *flags));
}

}  // namespace rowhouse::cli
