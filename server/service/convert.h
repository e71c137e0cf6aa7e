#ifndef ROWHOUSE_SERVER_SERVICE_CONVERT_H_
#define ROWHOUSE_SERVER_SERVICE_CONVERT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/repeated_field.h"
#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "rowhouse/v1/event_service.pb.h"
#include "rowhouse/v1/table.pb.h"
#include "server/shard/shard.h"

/// The wire's messages to the shard's types and back. What comes from a caller
/// is checked here, as far as it can be without the shard's state.
namespace rowhouse::server {

// ------------------------------------------------------------- from a caller
// --

/// Errors:
///   kInvalidArgument  BAD_NAME: not `tables/{table}`.
absl::Status CheckTableName(std::string_view name);

/// Errors:
///   kInvalidArgument  MALFORMED: no trainer. BAD_RANK, BAD_SESSION.
template <typename Message>
absl::StatusOr<TrainerSession> TrainerOf(const Message& message);
absl::StatusOr<TrainerSession> ToTrainer(const v1::TrainerSession* trainer);

/// The element type that `field` names.
///
/// Errors:
///   kInvalidArgument  BAD_DTYPE: it is not `wanted`.
absl::Status CheckDtype(std::string_view field, v1::DataType found,
                        kernels::DType wanted);

/// Errors:
///   kInvalidArgument  BAD_EVENT: below `least`.
absl::Status CheckEvent(std::string_view field, int64_t event, int64_t least);

/// The shard checks that the update is of the table's kind, and its scalars.
///
/// Errors:
///   kInvalidArgument  MALFORMED, BAD_SESSION.
absl::StatusOr<EventCommit> ToCommit(const v1::EventCommit& commit);

/// A view of `field`, valid as long as it is.
std::span<const int64_t> SpanOf(
    const google::protobuf::RepeatedField<int64_t>& field);

// --------------------------------------------------------------- to a caller
// --

v1::DataType ToProto(kernels::DType dtype);
v1::EventCommit ToProto(const EventCommit& commit);
google::protobuf::Duration ToProto(absl::Duration duration);
void Fill(const EventState& state, v1::GetEventStateResponse& response);
void Fill(const kernels::GradientStatistics& statistics,
          v1::GetEventStatisticsResponse& response);

// --------------------------------------------------------------------- bodies
// --

template <typename Message>
absl::StatusOr<TrainerSession> TrainerOf(const Message& message) {
  return ToTrainer(message.has_trainer() ? &message.trainer() : nullptr);
}

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_CONVERT_H_
