// A load for users' own clusters, on a table of its own.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/bench_report.h"
#include "client/cli/bench_run.h"
#include "client/cli/checks.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/cli/table_view.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse bench\n"
    "  rowhouse bench --rows=10M --dim=768 --batch=16Ki --trainers=4 "
    "--seconds=30\n"
    "  rowhouse bench --pushes=0 --json     reads alone\n";

// What a server fills with initial rows in a second, at the least.
constexpr double kLeastFillRate = 50e6;

// For servers to answer, after an interrupt.
constexpr absl::Duration kInterruptedSurvey = absl::Seconds(1);

struct Flags {
  BenchLoad load;
  BenchTable table;
  int64_t trainer_count = 1;
  double seconds = 10;
  double warm_up_seconds = 1;
  bool replace = false;
};

client::TableSpec SpecOf(const Flags& flags) {
  client::TableSpec spec;
  spec.row_count = flags.table.row_count;
  spec.dim = flags.table.dim;
  spec.row_dtype =
      flags.table.dtype == "fp32" ? client::DType::kFp32 : client::DType::kBf16;
  spec.gradient_dtype = spec.row_dtype;
  spec.shard_count = flags.table.server_count;
  // Rows of zeros would be pages that nobody has touched.
  spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
  spec.trainer_count = flags.load.trainer_count;
  spec.gradient_reduction = client::GradientReduction::kSum;
  const int32_t pushes = std::max(flags.load.push_count, 1);
  spec.max_contribution_row_count = flags.load.batch_rows * pushes;
  spec.max_part_count = pushes;
  // A pull is one call; and no more is reserved for it.
  spec.max_pull_bytes =
      std::max(flags.load.batch_rows * spec.dim * SizeOf(spec.row_dtype),
               int64_t{1} << 20);
  return spec;
}

absl::Status CheckFree(client::Cluster& cluster, const Flags& flags,
                       absl::Duration timeout) {
  const std::string& table = flags.load.table;
  const std::vector<client::ServerState> servers =
      cluster.Survey({.timeout = timeout, .table = table});
  for (const client::ServerState& server : servers) {
    ROWHOUSE_RETURN_IF_ERROR(server.status);
  }
  if (TablesOf(servers).empty()) return absl::OkStatus();
  if (!flags.replace) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a table ", table,
        " is there, and bench deletes its table at the end; give another "
        "--table, or --replace to lose that one"));
  }
  return cluster.DeleteTable(table, {.timeout = timeout});
}

// Beyond `timeout` there is time for the rows to be made.
absl::Status Create(client::Cluster& cluster, const std::string& table,
                    const client::TableSpec& spec, absl::Duration timeout) {
  const double row_bytes = static_cast<double>(spec.dim) *
                           static_cast<double>(SizeOf(spec.row_dtype));
  const absl::Duration filling = absl::Seconds(
      static_cast<double>(spec.row_count) * row_bytes / kLeastFillRate);
  return cluster.CreateTable(table, spec, {.timeout = timeout + filling})
      .status();
}

// Deletes the table, over connections of its own: an interrupt has ended the
// load's. Not while a server is away, for which the call would wait. Returns
// whether it was there: servers may have refused to make it.
absl::StatusOr<bool> Delete(const ConnectionFlags& connection,
                            const std::string& table) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            ConnectLoosely(connection));
  const absl::Duration timeout = connection.timeout();
  const std::vector<client::ServerState> servers = cluster->Survey(
      {.timeout =
           Interrupted() ? std::min(timeout, kInterruptedSurvey) : timeout,
       .tables = false});
  for (const client::ServerState& server : servers) {
    if (!server.info.has_value()) return AwayError(servers);
  }
  const absl::Status deleted =
      cluster->DeleteTable(table, {.timeout = timeout});
  if (absl::IsNotFound(deleted)) return false;
  if (!deleted.ok()) return deleted;
  return true;
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

// Prints what came of the load, or what ended it; returns the exit code.
int Show(const Context& context, const Flags& flags,
         const absl::StatusOr<BenchReport>& report) {
  if (absl::IsCancelled(report.status())) {
    std::cerr << "rowhouse: interrupted; another interrupt leaves table "
              << flags.load.table << " behind\n";
    return kInterrupted;
  }
  if (!report.ok()) return PrintFault(report.status(), context);
  if (report->size_bytes() == 0) {
    std::cerr << "rowhouse: no call began within the measured time; give more "
                 "--seconds\n";
    return kRefused;
  }
  if (context.json) {
    PrintJson(ReportJson(flags.table, flags.load, *report));
  } else {
    Print(ReportText(flags.table, flags.load, *report, UsesColor()));
  }
  return kOk;
}

// The exit code is that of the first thing that failed.
int CleanUp(const Context& context, const BenchLoad& load, int code) {
  ReleaseInterrupts();
  const absl::StatusOr<bool> deleted = Delete(context.connection, load.table);
  if (!deleted.ok()) {
    std::cerr << "rowhouse: table " << load.table
              << " is left behind: " << deleted.status().message()
              << "\n  `rowhouse delete " << load.table
              << "` deletes it, once all servers answer\n";
    return code == kOk ? ExitCodeOf(deleted.status()) : code;
  }
  if (code != kOk && *deleted) {
    std::cerr << "rowhouse: table " << load.table << " is deleted\n";
  }
  return code;
}

absl::StatusOr<int> Run(const Context& context, Flags flags) {
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
  ROWHOUSE_RETURN_IF_ERROR(
      CheckFree(*cluster, flags, context.connection.timeout()));
  flags.table.server_count = static_cast<int32_t>(cluster->servers().size());
  CatchInterrupts();
  const InterruptWatch watch([&cluster] { cluster->CancelCalls(); });
  const absl::Status created =
      Create(*cluster, load.table, SpecOf(flags), load.timeout);
  // Somebody else's, made since.
  if (absl::IsAlreadyExists(created)) return created;
  const absl::StatusOr<BenchReport> report =
      created.ok() ? Measure(*cluster, context, load)
                   : absl::StatusOr<BenchReport>(created);
  return CleanUp(context, load, Show(context, flags, report));
}

void AddFlags(CLI::App& command, Flags& flags) {
  AddCount(command, "--rows", flags.table.row_count,
           "Rows of the table; 1Mi when not given", 1);
  AddCount(command, "--dim", flags.table.dim, "Elements of a row; 128", 1,
           1 << 19);
  command
      .add_option("--dtype", flags.table.dtype, "Of rows and gradients; bf16")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->type_name("NAME");
  AddCount(command, "--batch", flags.load.batch_rows,
           "Rows of a pull or push, random; 4Ki", 1, 1 << 24);
  AddCount(command, "--trainers", flags.trainer_count,
           "Trainers, each a thread; 1", 1, 4096);
  command
      .add_option("--pulls", flags.load.pull_count,
                  "Pulls of a trainer in an event; 1")
      ->check(CLI::Range(0, 1 << 16))
      ->type_name("COUNT");
  command
      .add_option("--pushes", flags.load.push_count,
                  "Pushes of a trainer in an event; 1. 0: no events")
      ->check(CLI::Range(0, 1 << 16))
      ->type_name("COUNT");
  command.add_option("--seconds", flags.seconds, "Measured time; 10")
      ->check(CLI::Range(0.1, 1e6))
      ->type_name("SECONDS");
  command
      .add_option("--warm-up", flags.warm_up_seconds,
                  "Time before, not measured; 1")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("SECONDS");
  command.add_flag("--replace", flags.replace,
                   "Deletes a table of this name that is there");
}

}  // namespace

void AddBench(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = AddCommand(
      app, context, "bench",
      "Loads the cluster with pulls, pushes and events on a table of its own, "
      "which it deletes at the end",
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
  AddFlags(command, *flags);
}

}  // namespace rowhouse::cli
