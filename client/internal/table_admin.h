#ifndef ROWHOUSE_CLIENT_INTERNAL_TABLE_ADMIN_H_
#define ROWHOUSE_CLIENT_INTERNAL_TABLE_ADMIN_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cluster_core.h"
#include "rowhouse/types.h"

namespace rowhouse::client::internal {

/// A table as all its shards see it.
///
/// Errors:
///   kNotFound  some server does not have it.
///   kInternal  the servers disagree about it.
absl::StatusOr<TableInfo> ReadTable(ClusterCore& cluster,
                                    std::string_view table,
                                    const CallContext& context);

/// What the shards' answers, one a shard in order, say together.
absl::StatusOr<TableInfo> MergeTable(const ClusterCore& cluster,
                                     const std::vector<ShardTable>& shards);

/// The table's digest: of all its shards, of one event.
///
/// Errors:
///   kInternal  HISTORY_DIFFERS.
absl::StatusOr<TableDigest> MergeDigests(
    const std::vector<ShardDigest>& digests);

/// `Cluster::Digest`, `Cluster::ImportRows`.
absl::StatusOr<TableDigest> ReadDigest(ClusterCore& cluster,
                                       const TableInfo& table,
                                       std::optional<int64_t> exact_event,
                                       const CallContext& context);
absl::Status WriteRows(ClusterCore& cluster, const TableInfo& table,
                       int64_t first_row_id, std::span<const std::byte> rows,
                       const CallContext& context);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_TABLE_ADMIN_H_
