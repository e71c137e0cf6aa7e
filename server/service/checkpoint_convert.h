#ifndef ROWHOUSE_SERVER_SERVICE_CHECKPOINT_CONVERT_H_
#define ROWHOUSE_SERVER_SERVICE_CHECKPOINT_CONVERT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/v1/checkpoint_service.pb.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint_work.h"
#include "server/checkpoints.h"

/// Checkpoints between messages and files.
namespace rowhouse::server {

/// FAILED_PRECONDITION (NO_CHECKPOINT_DIRECTORY) where there are none.
absl::Status CheckOffered(const Checkpoints* checkpoints);

/// `{checkpoint}` of `checkpoints/{checkpoint}`.
///
/// Errors:
///   kInvalidArgument  BAD_NAME: names the field.
absl::StatusOr<std::string> ToCheckpoint(std::string_view field,
                                         std::string_view name);

/// The same of a base, which may be empty.
absl::StatusOr<std::string> ToBase(std::string_view name);

/// `checkpoints/{checkpoint}`.
std::string FullCheckpointName(std::string_view checkpoint);

/// Checks the tables of a request: names, each once, and events.
///
/// Errors:
///   kInvalidArgument  MALFORMED, BAD_NAME, BAD_EVENT: names the field.
absl::Status CheckTables(
    const google::protobuf::RepeatedPtrField<v1::CheckpointTable>& tables);

void Fill(const CheckpointProgress& progress, v1::CheckpointProgress& proto);

/// With `with_specs` the tables' specs too.
absl::Status Fill(const LoadedCheckpoint& checkpoint, bool with_specs,
                  v1::Checkpoint& proto);

void Fill(const TableDiff& diff, v1::DiffCheckpointsResponse::TableDiff& proto);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_CHECKPOINT_CONVERT_H_
