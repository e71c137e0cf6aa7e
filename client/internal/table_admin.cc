#include "client/internal/table_admin.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr int64_t kDefaultMaxPullBytes = int64_t{64} << 20;
constexpr int kMaxRounds = 100;

// The digests of shards `wanted`, of `exact_event` if there is one.
absl::Status ReadShardDigests(ClusterCore& cluster, const TableInfo& table,
                              const std::vector<int32_t>& wanted,
                              std::optional<int64_t> exact_event,
                              const CallContext& context,
                              std::vector<ShardDigest>& digests) {
  return cluster.pool().FanOut(
      static_cast<int32_t>(wanted.size()), [&](int32_t i) {
        const int32_t shard = wanted[i];
        return cluster.CallServer(shard, context, [&](ShardChannel& channel) {
          absl::StatusOr<ShardDigest> digest =
              channel.DigestTable(table.name, exact_event, context);
          if (digest.ok()) digests[shard] = *digest;
          return digest.status();
        });
      });
}

int64_t Newest(const std::vector<ShardDigest>& digests) {
  int64_t newest = 0;
  for (const ShardDigest& digest : digests) {
    newest = std::max(newest, digest.event);
  }
  return newest;
}

// All in the first round and without an event; then those of another event.
std::vector<int32_t> ShardsNotAt(const std::vector<ShardDigest>& digests,
                                 std::optional<int64_t> event, int round) {
  std::vector<int32_t> shards;
  for (size_t i = 0; i < digests.size(); ++i) {
    if (round == 0 || !event.has_value() || digests[i].event != *event) {
      shards.push_back(static_cast<int32_t>(i));
    }
  }
  return shards;
}

// `size` bytes of rows from `first_row_id` on.
absl::Status CheckRows(const TableInfo& table, int64_t first_row_id,
                       int64_t size) {
  const int64_t row_bytes = table.row_bytes();
  const int64_t row_count = size / row_bytes;
  if (size % row_bytes != 0) {
    return wire::Error(absl::StatusCode::kInvalidArgument,
                       wire::reasons::kBadShape,
                       absl::StrCat(size, " bytes, wanted whole rows of ",
                                    row_bytes, " bytes"),
                       {{"found_bytes", std::to_string(size)},
                        {"row_bytes", std::to_string(row_bytes)}});
  }
  if (first_row_id < 0 || first_row_id > table.spec.row_count - row_count) {
    return wire::Error(
        absl::StatusCode::kOutOfRange, wire::reasons::kRowOutOfTable,
        absl::StrCat(row_count, " rows from row id ", first_row_id,
                     ", wanted rows in [0, ", table.spec.row_count, ")"),
        {{"row_id", std::to_string(first_row_id)},
         {"row_count", std::to_string(table.spec.row_count)}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableDigest> MergeDigests(
    const std::vector<ShardDigest>& digests) {
  TableDigest result{digests[0].history_sum, digests[0].event};
  for (const ShardDigest& digest : digests) {
    if (digest.history_sum != digests[0].history_sum) {
      return wire::Error(absl::StatusCode::kInternal,
                         wire::reasons::kHistoryDiffers,
                         absl::StrCat("shards of different histories at event ",
                                      result.event, ", wanted one history"),
                         {{"event", std::to_string(result.event)}});
    }
    result.digest += digest.row_sum;
  }
  return result;
}

absl::StatusOr<TableInfo> MergeTable(const ClusterCore& cluster,
                                     const std::vector<ShardTable>& shards) {
  const ShardTable& first = shards[0];
  TableInfo info;
  info.name = first.name;
  info.spec = first.spec;
  info.trainer_counts = first.trainer_counts;
  info.event = first.event;
  if (static_cast<int64_t>(first.bounds.size()) !=
      int64_t{first.spec.shard_count} + 1) {
    return absl::InternalError(absl::StrCat(
        first.bounds.size(), " shard bounds, wanted one more than the ",
        first.spec.shard_count, " shards"));
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardTable& shard = shards[i];
    const std::string& address =
        cluster.channel(static_cast<int32_t>(i)).address();
    if (shard.spec != first.spec || shard.bounds != first.bounds ||
        shard.shard_index != static_cast<int32_t>(i)) {
      return wire::Error(
          absl::StatusCode::kInternal, wire::reasons::kTableDiffers,
          absl::StrCat(address, ": another table ", first.name,
                       " than that of ", cluster.channel(0).address()),
          {{"address", address}});
    }
    info.shards.push_back({address, first.bounds[i], first.bounds[i + 1],
                           shard.event, shard.reserved_bytes});
    info.event = std::min(info.event, shard.event);
  }
  return info;
}

absl::StatusOr<TableInfo> ReadTable(ClusterCore& cluster,
                                    std::string_view table,
                                    const CallContext& context) {
  std::vector<ShardTable> shards(1);
  const auto read = [&](int32_t server, ShardChannel& channel) {
    absl::StatusOr<ShardTable> shard = channel.GetTable(table, context);
    if (shard.ok()) shards[server] = *std::move(shard);
    return shard.status();
  };
  ROWHOUSE_RETURN_IF_ERROR(cluster.CallServer(
      0, context, [&](ShardChannel& channel) { return read(0, channel); }));
  const int32_t shard_count = shards[0].spec.shard_count;
  if (shard_count < 1 || shard_count > cluster.server_count()) {
    return absl::InternalError(
        absl::StrCat("a table of ", shard_count, " shards on ",
                     cluster.server_count(), " servers"));
  }
  shards.resize(shard_count);
  ROWHOUSE_RETURN_IF_ERROR(cluster.CallServers(shard_count, context, read));
  return MergeTable(cluster, shards);
}

absl::StatusOr<TableDigest> ReadDigest(ClusterCore& cluster,
                                       const TableInfo& table,
                                       std::optional<int64_t> exact_event,
                                       const CallContext& context) {
  const auto count = static_cast<int32_t>(table.shards.size());
  std::vector<ShardDigest> digests(count);
  std::optional<int64_t> event = exact_event;
  absl::Status status;
  // A digest reads every row, and the table may move on meanwhile: then those
  // behind are asked again, or all anew.
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<int32_t> behind = ShardsNotAt(digests, event, round);
    if (round > 0 && behind.empty()) return MergeDigests(digests);
    status = ReadShardDigests(cluster, table, behind, event, context, digests);
    if (status.ok()) {
      event = Newest(digests);
      continue;
    }
    const bool past = wire::ReasonOf(status) == wire::reasons::kEventPast;
    if (!past || exact_event.has_value()) return status;
    if (cluster.clock().Now() >= context.deadline) return status;
    event.reset();
  }
  return status;
}

absl::Status WriteRows(ClusterCore& cluster, const TableInfo& table,
                       int64_t first_row_id, std::span<const std::byte> rows,
                       const CallContext& context) {
  ROWHOUSE_RETURN_IF_ERROR(CheckRows(table, first_row_id, std::ssize(rows)));
  const int64_t row_bytes = table.row_bytes();
  const int64_t end_row = first_row_id + std::ssize(rows) / row_bytes;
  const int64_t max_bytes = table.spec.max_pull_bytes == 0
                                ? kDefaultMaxPullBytes
                                : table.spec.max_pull_bytes;
  const int64_t call_rows = std::max<int64_t>(1, max_bytes / row_bytes);
  const auto write_shard = [&](int32_t shard) -> absl::Status {
    const TableShard& range = table.shards[shard];
    const int64_t end = std::min(range.end_row, end_row);
    for (int64_t row = std::max(range.first_row, first_row_id); row < end;
         row += call_rows) {
      const int64_t count = std::min(call_rows, end - row);
      ROWHOUSE_RETURN_IF_ERROR(
          cluster.CallServer(shard, context, [&](ShardChannel& channel) {
            return channel.ImportRows(
                table.name, row, table.spec.row_dtype, row_bytes,
                rows.subspan((row - first_row_id) * row_bytes,
                             count * row_bytes),
                context);
          }));
    }
    return absl::OkStatus();
  };
  return cluster.pool().FanOut(static_cast<int32_t>(table.shards.size()),
                               write_shard);
}

}  // namespace rowhouse::client::internal
