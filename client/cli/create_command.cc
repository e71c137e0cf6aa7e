// Makes a table.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/spec_flags.h"
#include "client/cli/spec_text.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse create ngram --rows=84602880 --dim=768 --dtype=bf16 \\\n"
    "    --reduction=mean --trainers=8 --max-rows=64Ki --uniform=0.02\n"
    "  rowhouse create words --spec=words.textproto --trainers=2\n"
    "  rowhouse create words --spec=words.textproto --dry-run\n";

absl::StatusOr<int> Run(const Context& context, const SpecFlags& flags,
                        bool dry_run) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::TableSpec spec,
      flags.Spec(static_cast<int32_t>(context.connection.servers.size())));
  if (dry_run) {
    if (context.json) {
      PrintJson({{"table", context.table}, {"spec", ToJson(spec)}});
    } else {
      Print(absl::StrCat("would create table ", context.table, "\n\n",
                         SpecText(spec, UsesColor())));
    }
    return 0;
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::TableInfo table,
      cluster->CreateTable(context.table, spec,
                           {.timeout = context.connection.timeout()}));
  if (context.json) {
    PrintJson(ToJson(table));
    return 0;
  }
  int64_t reserved_bytes = 0;
  for (const client::TableShard& shard : table.shards) {
    reserved_bytes += shard.reserved_bytes;
  }
  Print(absl::StrCat("table ", table.name, ": ", Count(spec.row_count),
                     " rows on ", table.shards.size(), " servers, ",
                     Bytes(reserved_bytes), " reserved\n"));
  return 0;
}

}  // namespace

void AddCreate(CLI::App& app, Context& context) {
  struct State {
    std::unique_ptr<SpecFlags> flags;
    bool dry_run = false;
  };
  const auto state = std::make_shared<State>();
  CLI::App& command = AddCommand(
      app, context, "create", "Creates a table; the same again is no fault",
      kExamples, [&context, state] {
        return Run(context, *state->flags, state->dry_run);
      });
  AddTable(command, context);
  state->flags = std::make_unique<SpecFlags>(command);
  command.add_flag("--dry-run", state->dry_run,
                   "Shows what would be made; asks no server");
}

}  // namespace rowhouse::cli
