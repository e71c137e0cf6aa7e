// Overwrites tables with what a checkpoint has of them.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/checkpoint_commands.h"
#include "client/cli/checkpoint_progress.h"
#include "client/cli/checks.h"
#include "client/cli/json.h"
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
    "servers, "
    "from any number\n"
    "  rowhouse checkpoint restore step-1000 --table=ngram\n";

struct Flags {
  std::string name;
  std::vector<std::string> tables;
  int32_t shard_count = 0;  // 0: not given.
  bool yes = false;
};

// Those of the checkpoint's tables, of which are restored, that are there.
absl::StatusOr<std::vector<std::string>> Overwritten(client::Cluster& cluster,
                                                     const Context& context,
                                                     const Flags& flags) {
  const client::CallOptions options{.timeout = context.connection.timeout()};
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::CheckpointInfo checkpoint,
      client::Checkpoints(cluster).Get(flags.name, options));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<client::TableInfo> there,
                            cluster.ListTables(options));
  const std::vector<std::string>& asked = flags.tables;
  std::vector<std::string> names;
  for (const client::CheckpointInfo::Table& table : checkpoint.tables) {
    const bool wanted = asked.empty() || std::find(asked.begin(), asked.end(),
                                                   table.name) != asked.end();
    const bool is_there =
        std::any_of(there.begin(), there.end(),
                    [&](const auto& info) { return info.name == table.name; });
    if (wanted && is_there) names.push_back(table.name);
  }
  return names;
}

client::RestorePlan PlanOf(const Flags& flags) {
  client::RestorePlan plan{.name = flags.name};
  for (const std::string& table : flags.tables) {
    plan.tables.push_back({.name = table});
  }
  if (flags.shard_count > 0) plan.shard_count = flags.shard_count;
  return plan;
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
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<std::string> overwritten,
                            Overwritten(*cluster, context, flags));
  if (!overwritten.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(Confirm(
        absl::StrCat("overwrite ", overwritten.size() == 1 ? "table" : "tables",
                     " ", absl::StrJoin(overwritten, ", ")),
        flags.name, flags.yes));
  }
  CheckpointWatch watch("restoring", *cluster, context);
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::vector<client::TableInfo> tables,
      client::Checkpoints(*cluster).Restore(PlanOf(flags), watch.options()));
  PrintTables(context, flags.name, tables);
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
      .add_option("--table", flags->tables,
                  "One of its tables, repeated for more; all when not given")
      ->allow_extra_args(false)
      ->check(CheckTableName)
      ->type_name("TABLE");
  command
      .add_option("--shards", flags->shard_count,
                  "On how many servers tables are created, whatever they were "
                  "on; as many when not given")
      ->check(AtLeast(1))
      ->type_name("COUNT");
  command.add_flag("--yes,-y", flags->yes, "Does not ask");
}

}  // namespace rowhouse::cli
