#ifndef ROWHOUSE_CLIENT_INTERNAL_GRPC_CONVERT_H_
#define ROWHOUSE_CLIENT_INTERNAL_GRPC_CONVERT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/shard_channel.h"
#include "google/protobuf/duration.pb.h"
#include "rowhouse/types.h"
#include "rowhouse/v1/event_service.pb.h"
#include "rowhouse/v1/row_service.pb.h"
#include "rowhouse/v1/server_service.pb.h"
#include "rowhouse/v1/table.pb.h"

namespace rowhouse::client::internal {

/// `tables/{table}`.
std::string ResourceName(std::string_view table);
/// `{table}` of that.
std::string ShortTableName(const std::string& name);

// Tables.
v1::DataType ToProto(DType dtype);
v1::TableSpec ToProto(const TableSpec& spec);
v1::TrainerSession ToProto(const TrainerSession& trainer);
v1::EventCommit ToProto(const EventCommit& commit);
v1::PullRowsRequest ToProto(const PullCall& pull);
v1::PushGradientsHeader ToProto(const PushCall& push);
EventCommit FromProto(const v1::EventCommit& commit);
v1::GetEventStateRequest ToProto(std::string_view table, const EventWait& wait);

/// Errors:
///   kUnimplemented  a table or element type that this library does not know.
absl::StatusOr<ShardTable> FromProto(const v1::Table& table);
absl::StatusOr<TableSpec> FromProto(const v1::TableSpec& proto);
absl::StatusOr<DType> FromProto(v1::DataType type);

ServerInfo FromProto(const v1::GetServerResponse& server,
                     const std::string& address);
EventState FromProto(const v1::GetEventStateResponse& state);
absl::Duration FromProto(const google::protobuf::Duration& duration);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_GRPC_CONVERT_H_
