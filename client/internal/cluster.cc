#include "rowhouse/cluster.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/cluster_core.h"
#include "client/internal/pull_gate.h"
#include "client/internal/router.h"
#include "client/internal/row_selection.h"
#include "client/internal/survey.h"
#include "client/internal/table_admin.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client {
namespace {

using internal::CallContext;
using internal::ClusterCore;
using internal::ShardChannel;
using internal::ShardTable;

// As long ahead as no part can have been accepted for.
constexpr int64_t kEventsAhead = 3;

}  // namespace

Cluster::Cluster(std::shared_ptr<ClusterCore> core) : core_(std::move(core)) {}

Cluster::~Cluster() = default;

void Cluster::CancelCalls() { core_->stop().Cancel(); }

const std::vector<ServerInfo>& Cluster::servers() const {
  return core_->servers();
}

std::vector<ServerState> Cluster::Survey(const SurveyOptions& options) {
  return internal::SurveyServers(*core_, options);
}

absl::StatusOr<TableInfo> Cluster::CreateTable(std::string_view table,
                                               const TableSpec& spec,
                                               const CallOptions& options) {
  if (spec.shard_count < 1 || spec.shard_count > core_->server_count()) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadSpec,
        absl::StrCat("shard_count ", spec.shard_count, ", wanted one in [1, ",
                     core_->server_count(), "], the servers"),
        {{"field", "shard_count"},
         {"shard_count", std::to_string(spec.shard_count)},
         {"server_count", std::to_string(core_->server_count())}});
  }
  if (!spec.gradient_reduction.has_value()) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadSpec,
                       "no gradient_reduction, wanted kSum or kMean",
                       {{"field", "gradient_reduction"}});
  }
  const CallContext context = core_->Context(options.timeout);
  std::vector<ShardTable> shards(spec.shard_count);
  ROWHOUSE_RETURN_IF_ERROR(core_->CallServers(
      spec.shard_count, context, [&](int32_t server, ShardChannel& channel) {
        absl::StatusOr<ShardTable> shard =
            channel.CreateTable(table, spec, context);
        if (shard.ok()) shards[server] = *std::move(shard);
        return shard.status();
      }));
  return internal::MergeTable(*core_, shards);
}

absl::StatusOr<TableInfo> Cluster::GetTable(std::string_view table,
                                            const CallOptions& options) {
  return internal::ReadTable(*core_, table, core_->Context(options.timeout));
}

absl::StatusOr<std::vector<TableInfo>> Cluster::ListTables(
    const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  std::vector<TableInfo> tables;
  std::string page_token;
  do {
    internal::ShardTablePage page;
    ROWHOUSE_RETURN_IF_ERROR(
        core_->CallServer(0, context, [&](ShardChannel& channel) {
          absl::StatusOr<internal::ShardTablePage> found =
              channel.ListTables(page_token, context);
          if (found.ok()) page = *std::move(found);
          return found.status();
        }));
    for (const ShardTable& shard : page.tables) {
      ROWHOUSE_ASSIGN_OR_RETURN(TableInfo info,
                                internal::MergeTable(*core_, {shard}));
      // The rest of the shards, from the bounds alone.
      for (int32_t i = 1;
           i < std::min(shard.spec.shard_count, core_->server_count()); ++i) {
        info.shards.push_back({core_->channel(i).address(), shard.bounds[i],
                               shard.bounds[i + 1], shard.event, 0});
      }
      tables.push_back(std::move(info));
    }
    page_token = page.next_page_token;
  } while (!page_token.empty());
  return tables;
}

absl::Status Cluster::DeleteTable(std::string_view table,
                                  const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  std::atomic<int32_t> deleted = 0;
  ROWHOUSE_RETURN_IF_ERROR(core_->CallServers(
      core_->server_count(), context, [&](int32_t, ShardChannel& channel) {
        const absl::Status status = channel.DeleteTable(table, context);
        if (absl::IsNotFound(status)) return absl::OkStatus();
        if (status.ok()) ++deleted;
        return status;
      }));
  if (deleted > 0) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kNotFound, wire::reasons::kNoSuchTable,
                     absl::StrCat("no table ", std::string(table)),
                     {{"table", std::string(table)}});
}

absl::Status Cluster::ResetTable(std::string_view table,
                                 const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  ROWHOUSE_ASSIGN_OR_RETURN(const TableInfo info,
                            internal::ReadTable(*core_, table, context));
  return core_->CallServers(info.spec.shard_count, context,
                            [&](int32_t, ShardChannel& channel) {
                              return channel.ResetTable(table, context);
                            });
}

absl::StatusOr<int64_t> Cluster::UpdateTrainerCount(
    std::string_view table, int32_t trainer_count, int64_t from_event,
    const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  ROWHOUSE_ASSIGN_OR_RETURN(const TableInfo info,
                            internal::ReadTable(*core_, table, context));
  if (from_event == 0) {
    for (const TableShard& shard : info.shards) {
      from_event = std::max(from_event, shard.event + kEventsAhead);
    }
  }
  ROWHOUSE_RETURN_IF_ERROR(core_->CallServers(
      info.spec.shard_count, context, [&](int32_t, ShardChannel& channel) {
        return channel.UpdateTable(table, trainer_count, from_event, context);
      }));
  return from_event;
}

absl::Status Cluster::ImportRows(std::string_view table, int64_t first_row_id,
                                 std::span<const std::byte> rows,
                                 const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  ROWHOUSE_ASSIGN_OR_RETURN(const TableInfo info,
                            internal::ReadTable(*core_, table, context));
  return internal::WriteRows(*core_, info, first_row_id, rows, context);
}

absl::StatusOr<int64_t> Cluster::ReadRows(std::string_view table,
                                          std::span<const int64_t> row_ids,
                                          std::span<std::byte> out,
                                          const ReadOptions& options) {
  ROWHOUSE_RETURN_IF_ERROR(
      internal::CheckReadEvents(options.min_event, options.exact_event));
  const CallContext context = core_->Context(options.timeout);
  ROWHOUSE_ASSIGN_OR_RETURN(TableInfo info,
                            internal::ReadTable(*core_, table, context));
  const auto row_count = static_cast<int64_t>(row_ids.size());
  ROWHOUSE_RETURN_IF_ERROR(
      internal::CheckBufferSize(out.size(), row_count, info.row_bytes()));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<internal::Router> router,
                            internal::Router::Make(core_, std::move(info)));
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::shared_ptr<const internal::RowSplit> split,
      internal::RowSplit::Make(router->placement(), row_ids));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Backend* const device,
                            core_->DeviceOf(out));
  internal::PullGate gate(router->shard_count(), 1, "reads");
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::shared_ptr<const internal::PulledRows> rows,
      router->Pull(
          std::move(split), {out.data(), device},
          {.min_event = options.min_event, .exact_event = options.exact_event},
          gate, context));
  return rows->event;
}

absl::StatusOr<TableDigest> Cluster::Digest(std::string_view table,
                                            std::optional<int64_t> exact_event,
                                            const CallOptions& options) {
  const CallContext context = core_->Context(options.timeout);
  ROWHOUSE_ASSIGN_OR_RETURN(const TableInfo info,
                            internal::ReadTable(*core_, table, context));
  return internal::ReadDigest(*core_, info, exact_event, context);
}

}  // namespace rowhouse::client
