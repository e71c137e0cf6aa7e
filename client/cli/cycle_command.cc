// Whole training cycles of an n-gram embedding, on a table of their own.

#include "client/cli/cycle_command.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/bench_table.h"
#include "client/cli/cycle_report.h"
#include "client/cli/cycle_summary.h"
#include "client/cli/cycle_timeline.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

namespace fs = std::filesystem;

client::TableSpec SpecOf(const CycleBench& bench) {
  client::TableSpec spec = SpecOf(bench.table);
  spec.trainer_count = bench.trainer_count;
  const int64_t rows = std::min(bench.load.MostRows(), spec.row_count);
  spec.max_contribution_row_count = rows;
  // A pull is one call: all its ids go ahead of the event.
  spec.max_pull_bytes =
      std::max(rows * spec.dim * SizeOf(spec.row_dtype), int64_t{1} << 20);
  spec.ngram.emplace().sign_seed = bench.load.seed;
  return spec;
}

absl::StatusOr<std::vector<CycleClient>> ConnectTrainers(
    const ConnectionFlags& connection, const CycleLoad& load, int32_t count) {
  std::vector<CycleClient> clients;
  for (int32_t rank = 0; rank < count; ++rank) {
    CycleClient& client = clients.emplace_back();
    client.log = std::make_unique<SpanLog>();
    ROWHOUSE_ASSIGN_OR_RETURN(client::ClusterOptions options,
                              ToOptions(connection));
    options.observer = client.log->observer();
    options.device_index = load.device_index;
    ROWHOUSE_ASSIGN_OR_RETURN(client.cluster,
                              client::Cluster::Connect(options));
  }
  return clients;
}

absl::StatusOr<CycleTrace> Measure(const Context& context,
                                   const std::vector<CycleClient>& clients,
                                   const CycleLoad& load) {
  Progress progress("bench", load.warm_up_count + load.cycle_count + 1,
                    Progress::Unit::kEvents, StderrScreen(context.quiet));
  return RunCycles(clients, load,
                   [&](int64_t cycles) { progress.Update(cycles); });
}

std::string JsonPath(const std::string& svg) {
  return fs::path(svg).replace_extension(".json").string();
}

absl::Status Write(const std::string& path, const std::string& text,
                   std::ios::openmode mode = std::ios::trunc) {
  std::ofstream file(path, std::ios::binary | mode);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return BadArgument(path + " cannot be written");
}

// The picture, and the summary with all spans beside it.
absl::Status WriteTimeline(const CycleFlags& flags, const CycleBench& bench,
                           const CycleTrace& trace,
                           const CycleSummary& summary) {
  Timeline timeline =
      TimelineOf(trace, absl::Milliseconds(flags.timeline_milliseconds));
  timeline.title = TimelineTitle(bench, summary);
  timeline.note = TimelineNote(bench, summary);
  ROWHOUSE_RETURN_IF_ERROR(Write(flags.timeline, RenderSvg(timeline)));
  Json json = CycleJson(bench, summary);
  json["timeline_seconds"] = absl::ToDoubleSeconds(timeline.length);
  json["trace"] = SpansJson(trace);
  return Write(JsonPath(flags.timeline), json.dump() + "\n");
}

absl::StatusOr<int> MeasureAndShow(const Context& context,
                                   const CycleFlags& flags,
                                   const CycleBench& bench,
                                   const std::vector<CycleClient>& clients) {
  ROWHOUSE_ASSIGN_OR_RETURN(const CycleTrace trace,
                            Measure(context, clients, bench.load));
  const client::TableSpec spec = SpecOf(bench);
  const CycleSummary summary =
      Summarize(trace, spec.dim * SizeOf(spec.row_dtype),
                spec.dim * SizeOf(spec.gradient_dtype));
  if (context.json) {
    PrintJson(CycleJson(bench, summary));
  } else {
    Print(CycleText(bench, summary, UsesColor()));
  }
  if (flags.timeline.empty()) return kOk;
  ROWHOUSE_RETURN_IF_ERROR(WriteTimeline(flags, bench, trace, summary));
  if (!context.json) {
    Print(absl::StrCat("\ntime line in ", flags.timeline, ", its spans in ",
                       JsonPath(flags.timeline), "\n"));
  }
  return kOk;
}

// Leaves the file as it is, and none where there is none.
absl::Status CheckWritable(const std::string& path) {
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  const absl::Status written = Write(path, "", std::ios::app);
  if (written.ok() && !is_there) fs::remove(path, error);
  return written;
}

// Before anything is measured.
absl::Status CheckTimeline(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  if (fs::path(path).extension() != ".svg") {
    return BadArgument(
        absl::StrCat("--timeline=", path, ", wanted a name that ends in .svg"));
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckWritable(path));
  return CheckWritable(JsonPath(path));
}

}  // namespace

absl::StatusOr<int> RunCycleBench(const Context& context,
                                  const CycleFlags& flags, BenchTable table,
                                  int32_t trainer_count, bool replace) {
  ROWHOUSE_RETURN_IF_ERROR(CheckTimeline(flags.timeline));
  CycleBench bench{.table = std::move(table),
                   .load = flags.load,
                   .trainer_count = trainer_count,
                   .addresses = context.connection.servers};
  bench.load.table = context.table;
  bench.load.step_count = static_cast<int32_t>(flags.step_count);
  bench.load.prefetch = !flags.no_prefetch;
  bench.load.law = flags.zipf ? TokenLaw::kZipf : TokenLaw::kUniform;
  if (flags.device_index >= 0) {
    bench.load.device_index = static_cast<int>(flags.device_index);
  }
  bench.load.model_time = absl::Milliseconds(flags.model_milliseconds);
  // A wait for an event takes as long as the cycle before it.
  bench.load.timeout = context.connection.work_timeout() +
                       bench.load.model_time * bench.load.step_count;
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  bench.table.server_count = static_cast<int32_t>(cluster->servers().size());
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::vector<CycleClient> clients,
      ConnectTrainers(context.connection, bench.load, trainer_count));
  return OnOwnTable(
      context, *cluster, {SpecOf(bench), replace},
      [&] {
        cluster->CancelCalls();
        for (const CycleClient& client : clients) client.cluster->CancelCalls();
      },
      [&] { return MeasureAndShow(context, flags, bench, clients); });
}

void AddCycleFlags(CLI::App& command, CycleFlags& flags,
                   const std::vector<CLI::Option*>& others) {
  CLI::Option* const cycle = command.add_flag(
      "--cycle", flags.cycle,
      "Whole training cycles of an n-gram embedding instead, and where their "
      "time goes");
  for (CLI::Option* const other : others) cycle->excludes(other);
  AddCount(command, "--tokens", flags.load.token_count,
           "--cycle: tokens of a trainer's step; 48Ki", 1, 1 << 24)
      .needs(cycle);
  AddCount(command, "--steps", flags.step_count, "--cycle: steps of a cycle; 4",
           1, 1 << 10)
      .needs(cycle);
  AddCount(command, "--cycles", flags.load.cycle_count,
           "--cycle: cycles that are measured, after two others; 10", 1,
           1 << 16)
      .needs(cycle);
  command
      .add_flag("--zipf", flags.zipf,
                "--cycle: the n-th token is 1/n as often as the first, and "
                "n-grams repeat; else tokens are alike, and hardly one does")
      ->needs(cycle);
  command
      .add_flag("--no-prefetch", flags.no_prefetch,
                "--cycle: sends a cycle's row ids when it begins, not in the "
                "cycle before")
      ->needs(cycle);
  command
      .add_option("--model-ms", flags.model_milliseconds,
                  "--cycle: what a step's model takes, a wait; 0")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("MILLISECONDS")
      ->needs(cycle);
  AddCount(
      command, "--gpu", flags.device_index,
      "--cycle: the GPU, from 0, that has cache, embeddings and gradients; "
      "the host when not given",
      0, 1 << 10)
      .needs(cycle);
  command
      .add_option("--timeline", flags.timeline,
                  "--cycle: writes a picture of two cycles, and every span to "
                  "a .json beside it")
      ->type_name("FILE.svg")
      ->needs(cycle);
  command
      .add_option("--timeline-ms", flags.timeline_milliseconds,
                  "--cycle: time from the picture's left to its right; two "
                  "cycles when not given")
      ->check(CLI::Range(0.001, 1e9))
      ->type_name("MILLISECONDS")
      ->needs(cycle);
}

}  // namespace rowhouse::cli
