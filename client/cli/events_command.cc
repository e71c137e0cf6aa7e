// Where a table's events stand: who has sealed, and who is awaited.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/surveying.h"
#include "client/cli/table_view.h"
#include "client/cli/terminal.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse events ngram\n"
    "  rowhouse events ngram --json | jq '.open_events[0].awaited'\n";

Cell StateOf(const RankView& rank, int32_t shard_count) {
  if (rank.sealed_on == shard_count) return {"sealed", Style::kGood};
  if (rank.sealed_on > 0) {
    return {absl::StrCat("sealed on ", rank.sealed_on, " of ", shard_count),
            Style::kBad};
  }
  if (rank.session == 0) return {"never joined", Style::kBad};
  return {rank.begun_on > 0 ? "awaited, has begun" : "awaited",
          rank.lease_expired ? Style::kBad : Style::kPlain};
}

std::string Show(const OpenEventView& event, int32_t shard_count, bool color) {
  const std::vector<int32_t> awaited = event.Awaited(shard_count);
  std::string out = absl::StrCat("open event ", event.event, ": ",
                                 event.ranks.size() - awaited.size(), " of ",
                                 event.ranks.size(), " ranks have sealed");
  absl::StrAppend(&out,
                  awaited.empty() ? "; awaited: the commit of rank 0"
                                  : "; awaited: " + Ranks(awaited),
                  "\n");
  TextTable table({{"rank", Align::kRight},
                   {"session", Align::kRight},
                   {"state"},
                   {"parts", Align::kRight},
                   {"rows", Align::kRight},
                   {"tokens", Align::kRight},
                   {"last keep-alive", Align::kRight},
                   {"lease"}});
  for (const RankView& rank : event.ranks) {
    std::vector<Cell> row = {
        absl::StrCat(rank.rank),    absl::StrCat(rank.session),
        StateOf(rank, shard_count), absl::StrCat(rank.part_count),
        Count(rank.row_count),      Count(rank.token_count)};
    if (rank.idle.has_value()) {
      row.emplace_back(Span(*rank.idle) + " ago");
      row.emplace_back(rank.lease_expired ? "expired" : "held",
                       rank.lease_expired ? Style::kBad : Style::kPlain);
    }
    table.AddRow(std::move(row));
  }
  return out + table.ToString(color) + "\n";
}

std::string Show(const std::vector<AppliedEventView>& events, bool color) {
  if (events.empty()) return "no event has been applied\n";
  TextTable table({{"applied event", Align::kRight},
                   {"update"},
                   {"shards", Align::kRight},
                   {"gradient rows", Align::kRight},
                   {"rows visited", Align::kRight},
                   {"left as they were", Align::kRight},
                   {"bytes moved", Align::kRight}});
  for (const AppliedEventView& event : events) {
    table.AddRow({absl::StrCat(event.event), NameOf(event.update),
                  absl::StrCat(event.applied_on), Count(event.entry_count),
                  Count(event.row_count), Count(event.untouched_row_count),
                  Bytes(event.moved_bytes)});
  }
  return table.ToString(color);
}

Json ToJson(const OpenEventView& event, int32_t shard_count) {
  Json ranks = Json::array();
  for (const RankView& rank : event.ranks) {
    Json json = {{"rank", rank.rank},
                 {"session", rank.session},
                 {"sealed", rank.sealed_on == shard_count},
                 {"sealed_shard_count", rank.sealed_on},
                 {"part_count", rank.part_count},
                 {"row_count", rank.row_count},
                 {"token_count", rank.token_count},
                 {"lease_expired", rank.lease_expired}};
    if (rank.idle.has_value()) {
      json["idle_seconds"] = absl::ToDoubleSeconds(*rank.idle);
    }
    ranks.push_back(std::move(json));
  }
  return {{"event", event.event},
          {"awaited", event.Awaited(shard_count)},
          {"ranks", std::move(ranks)}};
}

Json ToJson(const AppliedEventView& event) {
  return {{"event", event.event},
          {"update", NameOf(event.update)},
          {"applied_shard_count", event.applied_on},
          {"entry_count", event.entry_count},
          {"row_count", event.row_count},
          {"untouched_row_count", event.untouched_row_count},
          {"moved_bytes", event.moved_bytes}};
}

Json ToJson(const TableView& table, int32_t shard_count) {
  Json json = {{"table", table.name},
               {"event", table.event},
               {"shards_found", shard_count},
               {"open_events", Json::array()},
               {"applied_events", Json::array()}};
  for (const OpenEventView& event : table.OpenEvents()) {
    json["open_events"].push_back(ToJson(event, shard_count));
  }
  for (const AppliedEventView& event : table.AppliedEvents()) {
    json["applied_events"].push_back(ToJson(event));
  }
  return json;
}

absl::Status NoSuchTable(const std::string& table) {
  return wire::Error(absl::StatusCode::kNotFound, wire::reasons::kNoSuchTable,
                     absl::StrCat("no server has a table ", table),
                     {{"table", table}});
}

absl::StatusOr<int> Run(const Context& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<client::ServerState> servers,
                            SurveyCluster(context.connection, context.table));
  const std::vector<TableView> tables = TablesOf(servers);
  if (tables.empty()) {
    const int fault = EndOfSurvey(servers);
    if (fault != kOk) return fault;
    return NoSuchTable(context.table);
  }
  const TableView& table = tables[0];
  const auto shard_count = static_cast<int32_t>(table.shards.size());
  if (context.json) {
    PrintJson(ToJson(table, shard_count));
    return EndOfSurvey(servers);
  }
  const bool color = UsesColor();
  std::string out = absl::StrCat("table ", table.name, ": event ", table.event,
                                 " is applied");
  if (!table.whole()) {
    absl::StrAppend(&out, " (", shard_count, " of ", table.spec.shard_count,
                    " shards tell)");
  }
  out += "\n\n";
  for (const OpenEventView& event : table.OpenEvents()) {
    out += Show(event, shard_count, color);
  }
  Print(out + Show(table.AppliedEvents(), color));
  return EndOfSurvey(servers);
}

}  // namespace

void AddEvents(CLI::App& app, Context& context) {
  CLI::App& command = AddCommand(
      app, context, "events",
      "Shows who has sealed a table's next event, who is awaited, and what the "
      "last events did. Keep-alives come from a thread of a trainer's library: "
      "they tell that its process lives, not that it works",
      kExamples, [&context] { return Run(context); });
  AddTable(command, context);
}

}  // namespace rowhouse::cli
