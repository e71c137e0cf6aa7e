#ifndef ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_CONVERT_H_
#define ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_CONVERT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rowhouse/checkpoint.h"
#include "rowhouse/v1/checkpoint_service.pb.h"

namespace rowhouse::client::internal {

/// `checkpoints/{checkpoint}`; of an empty name an empty one.
std::string CheckpointResourceName(std::string_view checkpoint);

/// Fills in the fields that requests to write and to publish share.
template <typename Request>
void Fill(const CheckpointPlan& plan, Request& request);

CheckpointProgress FromProto(const v1::CheckpointProgress& proto);
CheckpointTableDiff FromProto(
    const v1::DiffCheckpointsResponse::TableDiff& proto);

/// Errors:
///   kUnimplemented  a table that this library does not know.
absl::StatusOr<CheckpointInfo> FromProto(const v1::Checkpoint& proto);
absl::StatusOr<PublishedCheckpoint> FromProto(
    const v1::PublishCheckpointResponse& proto);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_CONVERT_H_
