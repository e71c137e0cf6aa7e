// All tables.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/elements.h"
#include "client/cli/json.h"
#include "client/cli/surveying.h"
#include "client/cli/table_view.h"
#include "client/cli/terminal.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse list\n"
    "  rowhouse list --names\n"
    "  rowhouse list --json | jq -r '.tables[].table'\n";

Json ToJson(const TableView& table) {
  return {{"table", table.name},
          {"event", table.event},
          {"reserved_bytes", table.reserved_bytes()},
          {"shards_found", table.shards.size()},
          {"spec", cli::ToJson(table.spec)}};
}

Cell ShardsOf(const TableView& table) {
  if (table.whole()) return {absl::StrCat(table.spec.shard_count)};
  return {absl::StrCat(table.shards.size(), " of ", table.spec.shard_count),
          Style::kBad};
}

absl::StatusOr<int> Run(const Context& context, bool only_names) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<client::ServerState> servers,
                            SurveyCluster(context.connection));
  const std::vector<TableView> tables = TablesOf(servers);
  if (only_names) {
    for (const TableView& table : tables) Print(table.name + "\n");
    return EndOfSurvey(servers);
  }
  if (context.json) {
    Json json = {{"tables", Json::array()}};
    for (const TableView& table : tables) {
      json["tables"].push_back(ToJson(table));
    }
    PrintJson(json);
    return EndOfSurvey(servers);
  }
  if (tables.empty()) {
    Print("no tables; `rowhouse create` makes one\n");
    return EndOfSurvey(servers);
  }
  TextTable text({{"table"},
                  {"kind"},
                  {"rows", Align::kRight},
                  {"dim", Align::kRight},
                  {"dtype"},
                  {"shards", Align::kRight},
                  {"trainers", Align::kRight},
                  {"event", Align::kRight},
                  {"reserved", Align::kRight}});
  for (const TableView& table : tables) {
    const client::TableSpec& spec = table.spec;
    text.AddRow({table.name, spec.dense.has_value() ? "dense" : "sparse",
                 Count(spec.row_count), absl::StrCat(spec.dim),
                 NameOf(spec.row_dtype), ShardsOf(table),
                 absl::StrCat(spec.trainer_count), absl::StrCat(table.event),
                 Bytes(table.reserved_bytes())});
  }
  Print(text.ToString(UsesColor()));
  return EndOfSurvey(servers);
}

}  // namespace

void AddList(CLI::App& app, Context& context) {
  const auto only_names = std::make_shared<bool>(false);
  CLI::App& command =
      AddCommand(app, context, "list", "Lists the tables", kExamples,
                 [&context, only_names] { return Run(context, *only_names); });
  command
      .add_flag("--names", *only_names,
                "Nothing but their names, one a line; not with --json")
      ->excludes(app.get_option("--json"));
}

}  // namespace rowhouse::cli
