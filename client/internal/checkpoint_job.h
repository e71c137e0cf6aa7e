#ifndef ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_JOB_H_
#define ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_JOB_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/internal/cluster_core.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::client::internal {

/// `Checkpoints::Start`.
absl::StatusOr<std::unique_ptr<CheckpointJob>> StartCheckpoint(
    std::shared_ptr<ClusterCore> cluster, CheckpointPlan plan,
    const CallContext& context);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_JOB_H_
