// Overwrites tables with what a checkpoint has of them.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/checkpoint_commands.h"
#include "client/cli/checkpoint_progress.h"
#include "client/cli/checks.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/table_argument.h"
#include "client/cli/terminal.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse checkpoint restore step-1000                asks before it "
    "overwrites tables\n"
    "  rowhouse checkpoint restore step-1000 --yes          in scripts\n"
    "  rowhouse checkpoint restore step-1000 --shards=3     onto three "
    "servers, from any number\n"
    "  rowhouse checkpoint restore step-1000 --tables=ngram:3,head:1\n";

struct Flags {
  std::string name;
  std::vector<std::string> tables;  // As they were typed.
  int32_t shard_count = 0;          // 0: not given.
  bool yes = false;
};

absl::StatusOr<client::RestorePlan> PlanOf(const Flags& flags) {
  client::RestorePlan plan{.name = flags.name};
  for (const std::string& text : flags.tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(const TableArgument table,
                              ParseTableArgument(text, ':', 1));
    client::RestorePlan::Table& wanted = plan.tables.emplace_back();
    wanted.name = table.name;
    if (!table.number.has_value()) continue;
    if (*table.number > std::numeric_limits<int32_t>::max()) {
      return BadArgument(absl::StrCat(*table.number, " shards of table ",
                                      table.name, ", wanted fewer"));
    }
    wanted.shard_count = static_cast<int32_t>(*table.number);
  }
  if (flags.shard_count > 0) plan.shard_count = flags.shard_count;
  return plan;
}

// Those of the plan's tables that are there.
absl::StatusOr<std::vector<std::string>> Overwritten(
    client::Cluster& cluster, const Context& context,
    const client::RestorePlan& plan) {
  const client::CallOptions options{.timeout = context.connection.timeout()};
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::CheckpointInfo checkpoint,
      client::Checkpoints(cluster).Get(plan.name, options));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<client::TableInfo> there,
                            cluster.ListTables(options));
  std::vector<std::string> names;
  for (const client::CheckpointInfo::Table& table : checkpoint.tables) {
    const auto is_it = [&](const auto& other) {
      return other.name == table.name;
    };
    const bool wanted =
        plan.tables.empty() ||
        std::any_of(plan.tables.begin(), plan.tables.end(), is_it);
    if (wanted && std::any_of(there.begin(), there.end(), is_it)) {
      names.push_back(table.name);
    }
  }
  return names;
}

void PrintTables(const Context& context, const std::string& checkpoint,
                 const std::vector<client::TableInfo>& tables) {
  Json json = {{"checkpoint", checkpoint}, {"tables", Json::array()}};
  TextTable text({{"table"},
                  {"event", Align::kRight},
                  {"rows", Align::kRight},
                  {"shards", Align::kRight}});
  for (const client::TableInfo& table : tables) {
    json["tables"].push_back({{"table", table.name},
                              {"event", table.event},
                              {"row_count", table.spec.row_count},
                              {"shard_count", table.spec.shard_count}});
    text.AddRow({table.name, absl::StrCat(table.event),
                 Count(table.spec.row_count),
                 absl::StrCat(table.spec.shard_count)});
  }
  if (context.json) {
    PrintJson(json);
  } else {
    Print(text.ToString(UsesColor()));
  }
}

absl::StatusOr<int> Run(const Context& context, const Flags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(const client::RestorePlan plan, PlanOf(flags));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<std::string> overwritten,
                            Overwritten(*cluster, context, plan));
  if (!overwritten.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(Confirm(
        absl::StrCat("overwrite ", overwritten.size() == 1 ? "table" : "tables",
                     " ", absl::StrJoin(overwritten, ", ")),
        flags.name, flags.yes));
  }
  CheckpointWatch watch("restoring", *cluster, context);
  const absl::StatusOr<std::vector<client::TableInfo>> tables =
      client::Checkpoints(*cluster).Restore(plan, watch.options());
  if (absl::IsCancelled(tables.status())) {
    return absl::CancelledError(
        "shards that it had begun serve nothing until they are restored, "
        "reset or deleted; others are restored, or as they were: restore "
        "again");
  }
  ROWHOUSE_RETURN_IF_ERROR(tables.status());
  watch.End();
  PrintTables(context, plan.name, *tables);
  return 0;
}

}  // namespace

void AddCheckpointRestore(CLI::App& group, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = AddCommand(
      group, context, "restore",
      "Overwrites tables with what a checkpoint has of them, and creates those "
      "that are missing; closes all their sessions",
      kExamples, [&context, flags] { return Run(context, *flags); });
  AddCheckpointName(command, flags->name);
  command
      .add_option("--tables", flags->tables,
                  "Which of its tables, on how many servers; all when not "
                  "given")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CheckTableArgument(':', 1))
      ->type_name("TABLE[:SHARDS],...");
  command
      .add_option("--shards", flags->shard_count,
                  "On how many servers tables without a count of their own are "
                  "created; as many as they had when not given")
      ->check(AtLeast(1))
      ->type_name("COUNT");
  command.add_flag("--yes,-y", flags->yes, "Does not ask");
}

}  // namespace rowhouse::cli
