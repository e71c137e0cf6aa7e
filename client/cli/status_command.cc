// One look at a cluster: servers, and each shard of each table.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
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
    "  rowhouse status --servers=10.0.0.5:7070,10.0.0.6:7070\n"
    "  rowhouse status --json | jq '.servers[] | select(.ok | not)'\n";

std::string Of(int32_t found, int32_t most) {
  return absl::StrCat(found, "/", most);
}

Cell StateOf(const client::ServerState& server) {
  if (!server.info.has_value()) return {"AWAY", Style::kBad};
  if (server.info->draining) return {"draining", Style::kBad};
  if (!server.status.ok()) return {"WRONG", Style::kBad};
  return {"serving", Style::kGood};
}

TextTable Servers(const std::vector<client::ServerState>& servers) {
  TextTable table({{"server", Align::kRight},
                   {"address"},
                   {"state"},
                   {"backend"},
                   {"version"},
                   {"reserved", Align::kRight},
                   {"memory limit", Align::kRight},
                   {"tables", Align::kRight}});
  for (size_t i = 0; i < servers.size(); ++i) {
    const client::ServerState& server = servers[i];
    std::vector<Cell> row = {absl::StrCat(i), server.address, StateOf(server)};
    if (server.info.has_value()) {
      row.insert(row.end(), {server.info->backend, server.info->version,
                             Bytes(server.info->reserved_bytes),
                             Bytes(server.info->memory_limit_bytes),
                             absl::StrCat(server.shards.size())});
    }
    table.AddRow(std::move(row));
  }
  return table;
}

TextTable Devices(const std::vector<client::ServerState>& servers) {
  TextTable table({{"server", Align::kRight},
                   {"device"},
                   {"memory", Align::kRight},
                   {"free", Align::kRight},
                   {"reserved", Align::kRight}});
  for (size_t i = 0; i < servers.size(); ++i) {
    if (!servers[i].info.has_value()) continue;
    const client::ServerInfo& info = *servers[i].info;
    const client::Device& device = info.device;
    const bool tells = device.memory_bytes > 0;
    table.AddRow({absl::StrCat(i),
                  absl::StrCat(device.index, ": ", device.description),
                  tells ? Bytes(device.memory_bytes) : "?",
                  tells ? Bytes(device.free_memory_bytes) : "?",
                  Bytes(info.reserved_bytes)});
  }
  return table;
}

// `2`, or `2 (1 expired)`.
std::string Sessions(const client::EventState& state) {
  int expired = 0;
  for (const client::SessionState& session : state.sessions) {
    expired += session.lease_expired ? 1 : 0;
  }
  std::string text = absl::StrCat(state.sessions.size());
  if (expired > 0) absl::StrAppend(&text, " (", expired, " expired)");
  return text;
}

// `13: 1 of 2`, of the oldest open event.
std::string Sealed(const client::EventState& state) {
  if (state.open_events.empty()) return "";
  const client::OpenEventState& open = state.open_events[0];
  int sealed = 0;
  for (const client::ContributionState& contribution : open.contributions) {
    sealed += contribution.sealed ? 1 : 0;
  }
  return absl::StrCat(open.event, ": ", sealed, " of ", open.trainer_count);
}

// `2, 40 % full`: the fullest buffer. Beyond half of it a recorder may soon be
// left behind.
Cell Recorders(const client::ShardLoad& load) {
  std::string text = absl::StrCat(load.recording_count);
  if (load.recording_held_bytes == 0) return {text};
  const double share = static_cast<double>(load.recording_held_bytes) /
                       static_cast<double>(load.recording_buffer_bytes);
  absl::StrAppend(&text, ", ", static_cast<int>(100 * share), " % full");
  return {text, share > 0.5 ? Style::kBad : Style::kPlain};
}

// Servers that answer and have not their shard of a table.
std::vector<int32_t> MissingShards(
    const TableView& table, const std::vector<client::ServerState>& servers) {
  std::vector<int32_t> missing;
  for (int32_t index = 0; index < table.spec.shard_count; ++index) {
    const bool told = std::any_of(
        table.shards.begin(), table.shards.end(),
        [&](const auto* shard) { return shard->shard_index == index; });
    if (!told && index < std::ssize(servers) && servers[index].status.ok()) {
      missing.push_back(index);
    }
  }
  return missing;
}

TextTable Shards(const std::vector<TableView>& tables,
                 const std::vector<client::ServerState>& servers) {
  TextTable text({{"table"},
                  {"shard", Align::kRight},
                  {"rows", Align::kRight},
                  {"reserved", Align::kRight},
                  {"event", Align::kRight},
                  {"sealed"},
                  {"sessions"},
                  {"lane", Align::kRight},
                  {"waiting", Align::kRight},
                  {"pulls", Align::kRight},
                  {"parts", Align::kRight},
                  {"heads", Align::kRight},
                  {"staged", Align::kRight},
                  {"recorders"}});
  for (const TableView& table : tables) {
    for (const client::ShardState* shard : table.shards) {
      const client::EventState& state = shard->events;
      const client::ShardLoad& load = state.load;
      text.AddRow({table.name, Of(shard->shard_index, table.spec.shard_count),
                   Count(shard->end_row - shard->first_row),
                   Bytes(shard->reserved_bytes), absl::StrCat(state.event),
                   Sealed(state), Sessions(state),
                   Of(load.lane_call_count, load.max_lane_call_count),
                   Of(load.parked_call_count, load.max_parked_call_count),
                   absl::StrCat(load.open_pull_count),
                   absl::StrCat(load.landing_part_count),
                   absl::StrCat(load.open_head_call_count),
                   Bytes(load.staged_bytes), Recorders(load)});
    }
    for (const int32_t index : MissingShards(table, servers)) {
      text.AddRow({table.name, Of(index, table.spec.shard_count),
                   Cell{"LOST", Style::kBad}});
    }
  }
  return text;
}

std::string Headline(const std::vector<client::ServerState>& servers) {
  std::string cluster_id;
  size_t answered = 0;
  size_t wrong = 0;
  for (const client::ServerState& server : servers) {
    if (!server.info.has_value()) continue;
    if (++answered == 1) cluster_id = server.info->cluster_id;
    wrong += absl::IsFailedPrecondition(server.status) ? 1 : 0;
  }
  return absl::StrCat("cluster ", cluster_id.empty() ? "?" : cluster_id, ": ",
                      answered, " of ", servers.size(), " servers answer",
                      wrong == 0 ? ""
                                 : absl::StrCat(", but ", wrong,
                                                " of them WRONG: of another "
                                                "cluster, or not in the order "
                                                "of their indexes"),
                      "\n\n");
}

absl::StatusOr<int> Run(const Context& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<client::ServerState> servers,
                            SurveyCluster(context.connection));
  if (context.json) {
    Json json = {{"servers", Json::array()}};
    for (const client::ServerState& server : servers) {
      json["servers"].push_back(ToJson(server));
    }
    PrintJson(json);
    return EndOfSurvey(servers);
  }
  const bool color = UsesColor();
  std::string out = Headline(servers) + Servers(servers).ToString(color);
  const TextTable devices = Devices(servers);
  if (!devices.empty()) out += "\n" + devices.ToString(color);
  const TextTable shards = Shards(TablesOf(servers), servers);
  if (!shards.empty()) out += "\n" + shards.ToString(color);
  Print(out);
  return EndOfSurvey(servers);
}

}  // namespace

void AddStatus(CLI::App& app, Context& context) {
  AddCommand(app, context, "status",
             "Shows servers, tables, memory, events, queues and sessions",
             kExamples, [&context] { return Run(context); });
}

}  // namespace rowhouse::cli
