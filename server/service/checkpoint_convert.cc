#include "server/service/checkpoint_convert.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/util/time_util.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint_format.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

constexpr std::string_view kPrefix = "checkpoints/";

}  // namespace

absl::Status CheckOffered(const Checkpoints* checkpoints) {
  if (checkpoints != nullptr) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kNoCheckpointDirectory,
                     "this server has no directory of checkpoints; its "
                     "configuration names none");
}

absl::StatusOr<std::string> ToCheckpoint(std::string_view field,
                                         std::string_view name) {
  if (name.starts_with(kPrefix)) {
    std::string checkpoint(name.substr(kPrefix.size()));
    if (CheckName(field, checkpoint).ok()) return checkpoint;
  }
  return FieldError(
      wire::reasons::kBadName, field, std::string_view(Quoted(name)),
      "'checkpoints/' and 1 to 63 characters from [a-z0-9_-], the first one a "
      "letter");
}

absl::StatusOr<std::string> ToBase(std::string_view name) {
  if (name.empty()) return std::string();
  return ToCheckpoint("base", name);
}

std::string FullCheckpointName(std::string_view checkpoint) {
  return std::string(kPrefix).append(checkpoint);
}

absl::Status CheckTables(
    const google::protobuf::RepeatedPtrField<v1::CheckpointTable>& tables) {
  if (tables.empty()) return MissingError("tables");
  std::set<std::string> names;
  for (int i = 0; i < tables.size(); ++i) {
    const v1::CheckpointTable& table = tables[i];
    ROWHOUSE_RETURN_IF_ERROR(CheckTableName(table.name()));
    ROWHOUSE_RETURN_IF_ERROR(
        CheckEvent(absl::StrCat("tables[", i, "].event"), table.event(), 0));
    if (!names.insert(table.name()).second) {
      return FieldError(wire::reasons::kBadName,
                        std::string_view(absl::StrCat("tables[", i, "].name")),
                        std::string_view(Quoted(table.name())),
                        "another one than those before it");
    }
  }
  return absl::OkStatus();
}

void Fill(const CheckpointProgress& progress, v1::CheckpointProgress& proto) {
  proto.set_done_bytes(progress.done_bytes);
  proto.set_total_bytes(progress.total_bytes);
  proto.set_before_image_row_count(progress.before_image_row_count);
  *proto.mutable_event_wait_duration() =
      google::protobuf::util::TimeUtil::NanosecondsToDuration(
          absl::ToInt64Nanoseconds(progress.event_wait));
}

absl::Status Fill(const LoadedCheckpoint& checkpoint, bool with_specs,
                  v1::Checkpoint& proto) {
  const Manifest& manifest = checkpoint.manifest;
  proto.set_name(FullCheckpointName(manifest.checkpoint));
  *proto.mutable_create_time() =
      google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
          absl::ToUnixNanos(manifest.created_time));
  for (const LoadedTable& table : checkpoint.tables) {
    v1::Checkpoint::Table& out = *proto.add_tables();
    out.set_name("tables/" + table.entry.table);
    out.set_event(table.entry.event);
    out.set_saved_row_count(table.saved_row_count());
    out.set_size_bytes(table.size_bytes());
    if (!with_specs) continue;
    ROWHOUSE_ASSIGN_OR_RETURN(*out.mutable_spec(),
                              SpecFromJson(table.shards.front().spec));
  }
  proto.set_trainer_state_count(
      static_cast<int32_t>(manifest.trainer_states.size()));
  if (!manifest.base.empty()) proto.set_base(FullCheckpointName(manifest.base));
  proto.set_size_bytes(checkpoint.size_bytes());
  return absl::OkStatus();
}

void Fill(const TableDiff& diff,
          v1::DiffCheckpointsResponse::TableDiff& proto) {
  proto.set_name("tables/" + diff.table);
  if (diff.event.has_value()) proto.set_event(*diff.event);
  if (diff.other_event.has_value()) proto.set_other_event(*diff.other_event);
  proto.set_shape_differs(diff.shape_differs);
  proto.set_differing_row_count(diff.differing_row_count);
  if (diff.first_differing_row_id.has_value()) {
    proto.set_first_differing_row_id(*diff.first_differing_row_id);
  }
}

}  // namespace rowhouse::server
