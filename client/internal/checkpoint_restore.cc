#include "client/internal/checkpoint_restore.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/checkpoint_streams.h"
#include "client/internal/table_admin.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/cluster.h"

namespace rowhouse::client::internal {
namespace {

// For one short call, of a restoration that may end at `deadline`.
absl::Duration CallTimeout(const ClusterCore& cluster, absl::Time deadline) {
  return std::min(absl::Seconds(60), deadline - cluster.clock().Now());
}

// A table of the checkpoint, and how many shards are asked for.
struct Target {
  const CheckpointInfo::Table* table = nullptr;
  std::optional<int32_t> shard_count;
};

absl::StatusOr<std::vector<Target>> ChooseTables(
    const CheckpointInfo& checkpoint, const RestorePlan& plan) {
  std::vector<Target> targets;
  if (plan.tables.empty()) {
    for (const CheckpointInfo::Table& table : checkpoint.tables) {
      targets.push_back({&table, plan.shard_count});
    }
  }
  for (const RestorePlan::Table& wanted : plan.tables) {
    const auto found = std::find_if(
        checkpoint.tables.begin(), checkpoint.tables.end(),
        [&](const auto& table) { return table.name == wanted.name; });
    if (found == checkpoint.tables.end()) {
      return wire::Error(
          absl::StatusCode::kNotFound, wire::reasons::kNoSuchCheckpoint,
          absl::StrCat("no table ", wanted.name, " in checkpoint ",
                       checkpoint.name),
          {{"checkpoint", checkpoint.name}, {"table", wanted.name}});
    }
    const bool twice = std::any_of(
        targets.begin(), targets.end(),
        [&](const Target& target) { return target.table == &*found; });
    if (twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("table ", wanted.name, " twice, wanted each once"));
    }
    targets.push_back({&*found, wanted.shard_count.has_value()
                                    ? wanted.shard_count
                                    : plan.shard_count});
  }
  return targets;
}

// The table as it is to be made where there is none.
absl::StatusOr<TableSpec> SpecOf(const Target& target) {
  if (!target.table->spec.has_value()) {
    return absl::InternalError(
        absl::StrCat("no spec of table ", target.table->name));
  }
  TableSpec spec = *target.table->spec;
  if (target.shard_count.value_or(spec.shard_count) != spec.shard_count) {
    spec.shard_count = *target.shard_count;
    spec.shard_bounds.clear();  // They are of the other count.
  }
  return spec;
}

// The table that is there, or a new one.
absl::StatusOr<TableInfo> FindOrCreate(
    const std::shared_ptr<ClusterCore>& cluster, const Target& target,
    absl::Duration timeout) {
  const std::string& name = target.table->name;
  absl::StatusOr<TableInfo> found =
      ReadTable(*cluster, name, cluster->Context(timeout));
  if (absl::IsNotFound(found.status())) {
    ROWHOUSE_ASSIGN_OR_RETURN(const TableSpec spec, SpecOf(target));
    return Cluster(cluster).CreateTable(name, spec, {timeout});
  }
  ROWHOUSE_RETURN_IF_ERROR(found.status());
  const int32_t shard_count = found->spec.shard_count;
  if (target.shard_count.value_or(shard_count) != shard_count) {
    return wire::Error(
        absl::StatusCode::kFailedPrecondition, wire::reasons::kTableDiffers,
        absl::StrCat("table ", name, " has ", shard_count, " shards, wanted ",
                     *target.shard_count, ": delete it first"),
        {{"table", name},
         {"field", "shard_count"},
         {"found", std::to_string(shard_count)},
         {"wanted", std::to_string(*target.shard_count)}});
  }
  return found;
}

absl::StatusOr<CheckpointInfo> ReadCheckpoint(ClusterCore& cluster,
                                              const std::string& name,
                                              const CallContext& context) {
  CheckpointInfo checkpoint;
  ROWHOUSE_RETURN_IF_ERROR(
      cluster.CallServer(0, context, [&](ShardChannel& channel) {
        absl::StatusOr<CheckpointInfo> found =
            channel.checkpoints().Get(name, context);
        if (found.ok()) checkpoint = *std::move(found);
        return found.status();
      }));
  return checkpoint;
}

}  // namespace

absl::StatusOr<std::vector<TableInfo>> RestoreTables(
    const std::shared_ptr<ClusterCore>& cluster, const RestorePlan& plan,
    const CheckpointCallOptions& options) {
  const absl::Time deadline = cluster->clock().Now() + options.timeout;
  const auto timeout = [&] { return CallTimeout(*cluster, deadline); };
  ROWHOUSE_ASSIGN_OR_RETURN(
      const CheckpointInfo checkpoint,
      ReadCheckpoint(*cluster, plan.name, cluster->Context(timeout())));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<Target> targets,
                            ChooseTables(checkpoint, plan));
  std::vector<TableInfo> tables;
  for (const Target& target : targets) {
    ROWHOUSE_ASSIGN_OR_RETURN(TableInfo table,
                              FindOrCreate(cluster, target, timeout()));
    tables.push_back(std::move(table));
  }
  {
    CheckpointStreams streams(*cluster);
    for (const TableInfo& table : tables) {
      for (int32_t server = 0; server < table.spec.shard_count; ++server) {
        streams.Start(
            server, [&](CheckpointChannel& channel, ProgressSink progress,
                        const CallContext& context) {
              return channel.Restore(plan.name, table.name, progress, context);
            });
      }
    }
    ROWHOUSE_RETURN_IF_ERROR(streams.Await(options.watcher, deadline));
  }
  // As they are now.
  for (TableInfo& table : tables) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        table, ReadTable(*cluster, table.name, cluster->Context(timeout())));
  }
  return tables;
}

}  // namespace rowhouse::client::internal
