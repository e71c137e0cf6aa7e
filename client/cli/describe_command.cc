// One table: what it is, and where its rows are.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/elements.h"
#include "client/cli/json.h"
#include "client/cli/spec_text.h"
#include "client/cli/terminal.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse describe ngram\n"
    "  rowhouse describe ngram --json | jq '.shards[].reserved_bytes'\n";

absl::StatusOr<int> Run(const Context& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::TableInfo table,
      cluster->GetTable(context.table,
                        {.timeout = context.connection.timeout()}));
  if (context.json) {
    PrintJson(ToJson(table));
    return 0;
  }
  TextTable shards({{"shard", Align::kRight},
                    {"server"},
                    {"rows", Align::kRight},
                    {"first row", Align::kRight},
                    {"last row", Align::kRight},
                    {"event", Align::kRight},
                    {"reserved", Align::kRight}});
  for (size_t i = 0; i < table.shards.size(); ++i) {
    const client::TableShard& shard = table.shards[i];
    const int64_t row_count = shard.end_row - shard.first_row;
    const bool rows = row_count > 0;
    shards.AddRow({absl::StrCat(i), shard.address, Count(row_count),
                   rows ? Count(shard.first_row) : "",
                   rows ? Count(shard.end_row - 1) : "",
                   absl::StrCat(shard.event), Bytes(shard.reserved_bytes)});
  }
  const bool color = UsesColor();
  std::string out = absl::StrCat("table ", table.name, ", event ", table.event,
                                 "\n\n", SpecText(table.spec, color));
  for (size_t i = 1; i < table.trainer_counts.size(); ++i) {
    const client::TrainerCountChange& change = table.trainer_counts[i];
    absl::StrAppend(&out, change.trainer_count, " trainers from event ",
                    change.from_event, " on\n");
  }
  Print(out + "\n" + shards.ToString(color));
  return 0;
}

}  // namespace

void AddDescribe(CLI::App& app, Context& context) {
  CLI::App& command = AddCommand(
      app, context, "describe", "Shows what a table is and where its rows are",
      kExamples, [&context] { return Run(context); });
  AddTable(command, context);
}

}  // namespace rowhouse::cli
