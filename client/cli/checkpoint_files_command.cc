// Commands that read checkpoints through: verify, diff, compact.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/checkpoint_commands.h"
#include "client/cli/checkpoint_progress.h"
#include "client/cli/checkpoint_text.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::cli {
namespace {

constexpr char kVerifyExamples[] = "  rowhouse checkpoint verify step-1000\n";
constexpr char kDiffExamples[] =
    "  rowhouse checkpoint diff step-1000 step-1100\n"
    "  rowhouse checkpoint diff one other --json | jq '.tables[] | "
    ".differing_row_count'\n";
constexpr char kCompactExamples[] =
    "  rowhouse checkpoint compact step-1100 step-1100-full\n";

struct Names {
  std::string first;
  std::string second;
};

absl::Status NotAllRead() { return absl::CancelledError("not all was read"); }

absl::StatusOr<int> Verify(const Context& context, const std::string& name) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  CheckpointWatch watch("reading", *cluster, context);
  const absl::Status verified =
      client::Checkpoints(*cluster).Verify(name, watch.options());
  if (absl::IsCancelled(verified)) return NotAllRead();
  ROWHOUSE_RETURN_IF_ERROR(verified);
  const int64_t read_bytes = watch.last().done_bytes;
  if (context.json) {
    PrintJson({{"checkpoint", name}, {"read_bytes", read_bytes}});
  } else {
    Print(absl::StrCat("checkpoint ", name, " is as it was written; ",
                       Bytes(read_bytes), " read\n"));
  }
  return 0;
}

absl::StatusOr<int> Diff(const Context& context, const Names& names) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  CheckpointWatch watch("comparing", *cluster, context);
  const absl::StatusOr<std::vector<client::CheckpointTableDiff>> tables =
      client::Checkpoints(*cluster).Diff(names.first, names.second,
                                         watch.options());
  if (absl::IsCancelled(tables.status())) return NotAllRead();
  ROWHOUSE_RETURN_IF_ERROR(tables.status());
  bool equal = true;
  Json json = {{"checkpoint", names.first},
               {"other", names.second},
               {"tables", Json::array()}};
  for (const client::CheckpointTableDiff& table : *tables) {
    equal = equal && table.equal();
    json["tables"].push_back(ToJson(table));
  }
  if (context.json) {
    PrintJson(json);
  } else {
    Print(DiffText(*tables, UsesColor()));
  }
  return equal ? kOk : kRefused;
}

absl::StatusOr<int> Compact(const Context& context, const Names& names) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  client::Checkpoints checkpoints(*cluster);
  CheckpointWatch watch("compacting", *cluster, context);
  const absl::Status compacted =
      checkpoints.Compact(names.first, names.second, watch.options());
  if (absl::IsCancelled(compacted)) {
    return absl::CancelledError("nothing is left of checkpoint " +
                                names.second);
  }
  ROWHOUSE_RETURN_IF_ERROR(compacted);
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::CheckpointInfo compact,
      checkpoints.Get(names.second, {.timeout = context.connection.timeout()}));
  if (context.json) {
    PrintJson(ToJson(compact));
  } else {
    Print(CheckpointText(compact, UsesColor()));
  }
  return 0;
}

}  // namespace

void AddCheckpointVerify(CLI::App& group, Context& context) {
  const auto name = std::make_shared<std::string>();
  CLI::App& command = AddCommand(
      group, context, "verify",
      "Reads a checkpoint, and those it is based on, and checks every checksum",
      kVerifyExamples, [&context, name] { return Verify(context, *name); });
  AddCheckpointName(command, *name);
}

void AddCheckpointDiff(CLI::App& group, Context& context) {
  const auto names = std::make_shared<Names>();
  CLI::App& command = AddCommand(
      group, context, "diff",
      "Compares two checkpoints row by row; exit code 1 where they differ",
      kDiffExamples, [&context, names] { return Diff(context, *names); });
  AddCheckpointName(command, names->first);
  AddCheckpointName(command, names->second, "other");
}

void AddCheckpointCompact(CLI::App& group, Context& context) {
  const auto names = std::make_shared<Names>();
  CLI::App& command = AddCommand(
      group, context, "compact",
      "Writes all rows of a checkpoint that has a base as one that has none",
      kCompactExamples, [&context, names] { return Compact(context, *names); });
  AddCheckpointName(command, names->first);
  AddCheckpointName(command, names->second, "new").type_name("NAME");
}

}  // namespace rowhouse::cli
