// Writes a checkpoint, while training goes on.

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/checkpoint_commands.h"
#include "client/cli/checkpoint_progress.h"
#include "client/cli/checkpoint_text.h"
#include "client/cli/checks.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/table_argument.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse checkpoint create nightly               all tables, as they "
    "stand\n"
    "  rowhouse checkpoint create step-1000 --tables=ngram@1000,head@1000\n"
    "  rowhouse checkpoint create step-1100 --base=step-1000 "
    "--tables=ngram@1100,head@1100\n";

struct Flags {
  client::CheckpointPlan plan;
  std::vector<std::string> tables;
};

absl::Status AddTables(client::Cluster& cluster, const Context& context,
                       const std::vector<std::string>& named,
                       client::CheckpointPlan& plan) {
  for (const std::string& text : named) {
    ROWHOUSE_ASSIGN_OR_RETURN(const TableArgument table,
                              ParseTableArgument(text, '@', 0));
    plan.tables.push_back({table.name, table.number});
  }
  if (!named.empty()) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::vector<client::TableInfo> all,
      cluster.ListTables({.timeout = context.connection.timeout()}));
  for (const client::TableInfo& table : all) {
    plan.tables.push_back({.name = table.name});
  }
  if (all.empty()) return BadArgument("no tables, wanted one at least");
  return absl::OkStatus();
}

// From here on trainers may go past the events.
void SayArmed(const client::CheckpointPlan& plan) {
  std::vector<std::string> tables;
  for (const client::CheckpointPlan::Table& table : plan.tables) {
    tables.push_back(absl::StrCat(table.name, "@", table.event.value_or(0)));
  }
  std::cerr << "writing checkpoint " << plan.name << ": "
            << absl::StrJoin(tables, ", ") << '\n';
}

std::string WrittenText(const client::PublishedCheckpoint& published,
                        const client::CheckpointProgress& progress) {
  std::string out = CheckpointText(published.checkpoint, UsesColor());
  if (progress.before_image_row_count > 0) {
    absl::StrAppend(&out, "\n", Count(progress.before_image_row_count),
                    " rows were written ahead of events, which waited ",
                    Span(progress.event_wait), " for room\n");
  }
  if (!published.deleted_names.empty()) {
    absl::StrAppend(&out,
                    "\ndeleted: ", absl::StrJoin(published.deleted_names, ", "),
                    "\n");
  }
  return out;
}

absl::StatusOr<int> Run(const Context& context, const Flags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  client::CheckpointPlan plan = flags.plan;
  ROWHOUSE_RETURN_IF_ERROR(AddTables(*cluster, context, flags.tables, plan));
  CheckpointWatch watch("writing", *cluster, context);
  client::Checkpoints checkpoints(*cluster);
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::unique_ptr<client::CheckpointJob> job,
      checkpoints.Start(std::move(plan),
                        {.timeout = context.connection.timeout()}));
  if (!context.quiet) SayArmed(job->plan());
  const absl::StatusOr<client::PublishedCheckpoint> published =
      job->Await(watch.options());
  if (absl::IsCancelled(published.status())) {
    return absl::CancelledError("nothing is left of checkpoint " +
                                flags.plan.name);
  }
  ROWHOUSE_RETURN_IF_ERROR(published.status());
  if (context.json) {
    Json json = ToJson(published->checkpoint);
    json["before_image_row_count"] = watch.last().before_image_row_count;
    json["event_wait_seconds"] = absl::ToDoubleSeconds(watch.last().event_wait);
    json["deleted_checkpoints"] = published->deleted_names;
    PrintJson(json);
  } else {
    Print(WrittenText(*published, watch.last()));
  }
  return 0;
}

}  // namespace

void AddCheckpointCreate(CLI::App& group, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = AddCommand(
      group, context, "create",
      "Writes tables as of an event, while they are trained. Ctrl-C removes "
      "what was written",
      kExamples, [&context, flags] { return Run(context, *flags); });
  AddCheckpointName(command, flags->plan.name);
  command
      .add_option("--tables", flags->tables,
                  "The tables, as of which events, for which it waits; all "
                  "when not given, as they stand: while trainers step, name "
                  "events ahead")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CheckTableArgument('@', 0))
      ->type_name("TABLE[@EVENT],...");
  command
      .add_option("--base", flags->plan.base,
                  "Writes only rows that changed since this checkpoint")
      ->check(CheckCheckpointName)
      ->type_name("CHECKPOINT");
  command
      .add_option("--trainer-states", flags->plan.trainer_state_count,
                  "Waits for the states of so many trainers, from rank 0 on")
      ->check(AtLeast(0))
      ->type_name("COUNT");
}

}  // namespace rowhouse::cli
