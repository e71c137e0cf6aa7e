#include "client/internal/survey.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::StatusOr<ShardState> ToShardState(ShardTable table) {
  const int32_t index = table.shard_index;
  if (index < 0 || index + int64_t{1} >= std::ssize(table.bounds)) {
    return absl::InternalError(absl::StrCat("a shard of index ", index, " and ",
                                            table.bounds.size(), " bounds"));
  }
  return ShardState{.table = std::move(table.name),
                    .spec = std::move(table.spec),
                    .shard_index = index,
                    .first_row = table.bounds[index],
                    .end_row = table.bounds[index + 1],
                    .reserved_bytes = table.reserved_bytes,
                    .trainer_counts = std::move(table.trainer_counts),
                    .events = {}};
}

absl::StatusOr<std::vector<ShardTable>> ReadTables(ShardChannel& channel,
                                                   const std::string& table,
                                                   const CallContext& context) {
  if (!table.empty()) {
    absl::StatusOr<ShardTable> found = channel.GetTable(table, context);
    if (absl::IsNotFound(found.status())) return std::vector<ShardTable>();
    ROWHOUSE_RETURN_IF_ERROR(found.status());
    return std::vector<ShardTable>{*std::move(found)};
  }
  std::vector<ShardTable> tables;
  std::string page_token;
  do {
    ROWHOUSE_ASSIGN_OR_RETURN(ShardTablePage page,
                              channel.ListTables(page_token, context));
    std::move(page.tables.begin(), page.tables.end(),
              std::back_inserter(tables));
    page_token = page.next_page_token;
  } while (!page_token.empty());
  return tables;
}

absl::Status ReadShards(ShardChannel& channel, const std::string& table,
                        const CallContext& context,
                        std::vector<ShardState>& shards) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::vector<ShardTable> tables,
                            ReadTables(channel, table, context));
  for (ShardTable& found : tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(ShardState shard, ToShardState(std::move(found)));
    absl::StatusOr<EventState> events =
        channel.GetEventState(shard.table, {}, context);
    if (absl::IsNotFound(events.status())) continue;  // Deleted meanwhile.
    ROWHOUSE_RETURN_IF_ERROR(events.status());
    shard.events = *std::move(events);
    shards.push_back(std::move(shard));
  }
  return absl::OkStatus();
}

// A server that is away refuses at once. One that is silent may come to itself:
// it is asked until the deadline, however soon an attempt to connect gives up.
absl::StatusOr<ServerInfo> AskUntilRefused(Clock& clock, ShardChannel& channel,
                                           const CallContext& context) {
  constexpr absl::Duration kSilence = absl::Milliseconds(500);
  while (true) {
    const absl::Time begin = clock.Now();
    absl::StatusOr<ServerInfo> info = channel.GetServer(context);
    const absl::Time now = clock.Now();
    if (!absl::IsUnavailable(info.status()) || now - begin < kSilence ||
        now >= context.deadline) {
      return info;
    }
  }
}

// The wanted one, or that of the first server that answered.
std::string ClusterIdOf(const std::vector<ServerState>& servers,
                        const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  for (const ServerState& server : servers) {
    if (server.info.has_value()) return server.info->cluster_id;
  }
  return "";
}

}  // namespace

std::vector<ServerState> SurveyServers(ClusterCore& cluster,
                                       const SurveyOptions& options) {
  const CallContext context = cluster.Context(options.timeout);
  std::vector<ServerState> servers(cluster.server_count());
  // Each server fails for itself.
  const auto ask_all =
      [&](absl::FunctionRef<absl::Status(int32_t, ShardChannel&, ServerState&)>
              ask) {
        cluster.pool()
            .FanOut(cluster.server_count(),
                    [&](int32_t index) {
                      ServerState& server = servers[index];
                      if (!server.status.ok()) return absl::OkStatus();
                      server.status =
                          ask(index, cluster.channel(index), server);
                      return absl::OkStatus();
                    })
            .IgnoreError();
      };
  ask_all([&](int32_t, ShardChannel& channel, ServerState& server) {
    server.address = channel.address();
    absl::StatusOr<ServerInfo> info =
        AskUntilRefused(cluster.clock(), channel, context);
    if (info.ok()) server.info = *std::move(info);
    return info.status();
  });
  const std::string cluster_id = ClusterIdOf(servers, options.cluster_id);
  ask_all([&](int32_t index, ShardChannel& channel,
              ServerState& server) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(
        CheckServer(*server.info, cluster_id, index, cluster.server_count()));
    if (!options.tables) return absl::OkStatus();
    return ReadShards(channel, options.table, context, server.shards);
  });
  return servers;
}

}  // namespace rowhouse::client::internal
