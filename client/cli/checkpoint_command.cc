// The group `rowhouse checkpoint`; its commands that look, and delete.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/checkpoint_commands.h"
#include "client/cli/checkpoint_text.h"
#include "client/cli/checks.h"
#include "client/cli/json.h"
#include "client/cli/terminal.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse checkpoint create nightly\n"
    "  rowhouse checkpoint list\n"
    "  rowhouse checkpoint restore nightly --shards=3\n"
    "  rowhouse checkpoint create --help\n";
constexpr char kListExamples[] =
    "  rowhouse checkpoint list\n"
    "  rowhouse checkpoint list --names | tail -1\n";
constexpr char kInspectExamples[] =
    "  rowhouse checkpoint inspect step-1000\n"
    "  rowhouse checkpoint inspect step-1000 --json | jq '.tables[].event'\n";
constexpr char kDeleteExamples[] =
    "  rowhouse checkpoint delete step-1000          asks first\n"
    "  rowhouse checkpoint delete step-1000 --yes    in scripts\n";

absl::StatusOr<int> List(const Context& context, bool only_names) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::vector<client::CheckpointInfo> checkpoints,
      client::Checkpoints(*cluster).List(
          {.timeout = context.connection.timeout()}));
  if (only_names) {
    for (const client::CheckpointInfo& checkpoint : checkpoints) {
      Print(checkpoint.name + "\n");
    }
  } else if (context.json) {
    Json json = {{"checkpoints", Json::array()}};
    for (const client::CheckpointInfo& checkpoint : checkpoints) {
      json["checkpoints"].push_back(ToJson(checkpoint));
    }
    PrintJson(json);
  } else if (checkpoints.empty()) {
    Print("no checkpoints; `rowhouse checkpoint create` makes one\n");
  } else {
    Print(CheckpointListText(checkpoints, UsesColor()));
  }
  return 0;
}

absl::StatusOr<int> Inspect(const Context& context, const std::string& name) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::CheckpointInfo checkpoint,
      client::Checkpoints(*cluster).Get(
          name, {.timeout = context.connection.timeout()}));
  if (context.json) {
    PrintJson(ToJson(checkpoint));
  } else {
    Print(CheckpointText(checkpoint, UsesColor()));
  }
  return 0;
}

absl::StatusOr<int> Delete(const Context& context, const std::string& name,
                           bool yes) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_RETURN_IF_ERROR(
      Confirm(absl::StrCat("delete checkpoint ", name), name, yes));
  ROWHOUSE_RETURN_IF_ERROR(client::Checkpoints(*cluster).Delete(
      name, {.timeout = context.connection.timeout()}));
  if (context.json) {
    PrintJson({{"checkpoint", name}, {"done", "delete"}});
  } else {
    Print(absl::StrCat("checkpoint ", name, " is deleted\n"));
  }
  return 0;
}

}  // namespace

CLI::Option& AddCheckpointName(CLI::App& command, std::string& name,
                               const std::string& argument) {
  return *command.add_option(argument, name, "The checkpoint's name")
              ->required()
              ->check(CheckCheckpointName)
              ->type_name("CHECKPOINT");
}

void AddCheckpointList(CLI::App& group, Context& context) {
  const auto only_names = std::make_shared<bool>(false);
  CLI::App& command =
      AddCommand(group, context, "list", "Lists the checkpoints, oldest first",
                 kListExamples,
                 [&context, only_names] { return List(context, *only_names); });
  command
      .add_flag("--names", *only_names,
                "Nothing but their names, one a line; not with --json")
      ->excludes(group.get_parent()->get_option("--json"));
}

void AddCheckpointInspect(CLI::App& group, Context& context) {
  const auto name = std::make_shared<std::string>();
  CLI::App& command = AddCommand(
      group, context, "inspect", "Shows what a checkpoint holds",
      kInspectExamples, [&context, name] { return Inspect(context, *name); });
  AddCheckpointName(command, *name);
}

void AddCheckpointDelete(CLI::App& group, Context& context) {
  const auto name = std::make_shared<std::string>();
  const auto yes = std::make_shared<bool>(false);
  CLI::App& command = AddCommand(
      group, context, "delete",
      "Deletes a checkpoint, or what is left of one that did not become whole",
      kDeleteExamples,
      [&context, name, yes] { return Delete(context, *name, *yes); });
  AddCheckpointName(command, *name);
  command.add_flag("--yes,-y", *yes, "Does not ask");
}

void AddCheckpoint(CLI::App& app, Context& context) {
  CLI::App& group =
      AddGroup(app, "checkpoint",
               "Writes tables to disk while they are trained, and restores "
               "them",
               kExamples);
  AddCheckpointCreate(group, context);
  AddCheckpointList(group, context);
  AddCheckpointInspect(group, context);
  AddCheckpointVerify(group, context);
  AddCheckpointDiff(group, context);
  AddCheckpointCompact(group, context);
  AddCheckpointRestore(group, context);
  AddCheckpointDelete(group, context);
}

}  // namespace rowhouse::cli
