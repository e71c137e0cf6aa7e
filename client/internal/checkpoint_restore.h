#ifndef ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_RESTORE_H_
#define ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_RESTORE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/cluster_core.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::client::internal {

/// `Checkpoints::Restore`.
absl::StatusOr<std::vector<TableInfo>> RestoreTables(
    const std::shared_ptr<ClusterCore>& cluster, const RestorePlan& plan,
    const CheckpointCallOptions& options);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_RESTORE_H_
