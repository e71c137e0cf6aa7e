#include "client/internal/checkpoint_convert.h"

#include <string>
#include <string_view>

#include "client/internal/grpc_convert.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr std::string_view kCheckpointPrefix = "checkpoints/";

std::string ShortCheckpointName(const std::string& name) {
  return name.starts_with(kCheckpointPrefix)
             ? name.substr(kCheckpointPrefix.size())
             : name;
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) +
         absl::Nanoseconds(time.nanos());
}

}  // namespace

std::string CheckpointResourceName(std::string_view checkpoint) {
  if (checkpoint.empty()) return "";
  std::string name(kCheckpointPrefix);
  name += checkpoint;
  return name;
}

template <typename Request>
void Fill(const CheckpointPlan& plan, Request& request) {
  request.set_name(CheckpointResourceName(plan.name));
  for (const CheckpointPlan::Table& table : plan.tables) {
    v1::CheckpointTable& proto = *request.add_tables();
    proto.set_name(ResourceName(table.name));
    proto.set_event(table.event.value_or(0));
  }
  request.set_base(CheckpointResourceName(plan.base));
}
template void Fill(const CheckpointPlan&, v1::WriteCheckpointRequest&);
template void Fill(const CheckpointPlan&, v1::PublishCheckpointRequest&);

CheckpointProgress FromProto(const v1::CheckpointProgress& proto) {
  return {proto.done_bytes(), proto.total_bytes(),
          proto.before_image_row_count(),
          FromProto(proto.event_wait_duration())};
}

CheckpointTableDiff FromProto(
    const v1::DiffCheckpointsResponse::TableDiff& proto) {
  CheckpointTableDiff diff;
  diff.name = ShortTableName(proto.name());
  if (proto.has_event()) diff.event = proto.event();
  if (proto.has_other_event()) diff.other_event = proto.other_event();
  diff.shape_differs = proto.shape_differs();
  diff.differing_row_count = proto.differing_row_count();
  if (proto.has_first_differing_row_id()) {
    diff.first_differing_row_id = proto.first_differing_row_id();
  }
  return diff;
}

absl::StatusOr<CheckpointInfo> FromProto(const v1::Checkpoint& proto) {
  CheckpointInfo info;
  info.name = ShortCheckpointName(proto.name());
  info.create_time = FromProto(proto.create_time());
  for (const v1::Checkpoint::Table& from : proto.tables()) {
    CheckpointInfo::Table table;
    table.name = ShortTableName(from.name());
    table.event = from.event();
    if (from.has_spec()) {
      ROWHOUSE_ASSIGN_OR_RETURN(table.spec, FromProto(from.spec()));
    }
    table.saved_row_count = from.saved_row_count();
    table.size_bytes = from.size_bytes();
    info.tables.push_back(std::move(table));
  }
  info.trainer_state_count = proto.trainer_state_count();
  info.base = ShortCheckpointName(proto.base());
  info.size_bytes = proto.size_bytes();
  return info;
}

absl::StatusOr<PublishedCheckpoint> FromProto(
    const v1::PublishCheckpointResponse& proto) {
  PublishedCheckpoint published;
  ROWHOUSE_ASSIGN_OR_RETURN(published.checkpoint,
                            FromProto(proto.checkpoint()));
  for (const std::string& name : proto.deleted_names()) {
    published.deleted_names.push_back(ShortCheckpointName(name));
  }
  return published;
}

}  // namespace rowhouse::client::internal
