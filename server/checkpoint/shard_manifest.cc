#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/manifest_format.h"
#include "server/checkpoint/sealed_json.h"

namespace rowhouse::server {
namespace {

constexpr std::string_view kFormat = "rowhouse-checkpoint-shard";

Json ColumnsToJson(const ShardManifest& manifest) {
  Json columns = Json::array();
  for (size_t i = 0; i < manifest.file.columns.size(); ++i) {
    const ColumnSpec& column = manifest.file.columns[i];
    columns.push_back(
        {{"name", column.name},
         {"dtype", column.dtype},
         {"width", column.width},
         {"row_bytes", column.row_bytes},
         {"block_checksums",
          ChecksumsToJson(manifest.summary.block_checksums.at(i))}});
  }
  return columns;
}

Json SidesToJson(const ShardManifest& manifest) {
  Json sides = Json::array();
  for (size_t i = 0; i < manifest.file.sides.size(); ++i) {
    const SideTensorSpec& side = manifest.file.sides[i];
    sides.push_back(
        {{"name", side.name},
         {"dtype", side.dtype},
         {"shape", side.shape},
         {"checksum", ChecksumToJson(manifest.summary.side_checksums.at(i))}});
  }
  return sides;
}

Json TrainerCountsToJson(const std::vector<TrainerCountEntry>& counts) {
  Json json = Json::array();
  for (const TrainerCountEntry& entry : counts) {
    json.push_back({{"from_event", entry.from_event},
                    {"trainer_count", entry.trainer_count}});
  }
  return json;
}

void ReadFile(const Json& json, ShardManifest& manifest) {
  manifest.file.row_count = json.at("row_count").get<int64_t>();
  manifest.file.block_rows = json.at("block_rows").get<int64_t>();
  manifest.summary.size_bytes = json.at("size_bytes").get<int64_t>();
  manifest.summary.header_checksum =
      ChecksumFromJson(json.at("header_checksum"));
  for (const Json& side : json.at("side_tensors")) {
    manifest.file.sides.push_back(
        {side.at("name").get<std::string>(),
         side.at("dtype").get<std::string>(),
         side.at("shape").get<std::vector<int64_t>>()});
    manifest.summary.side_checksums.push_back(
        ChecksumFromJson(side.at("checksum")));
  }
  for (const Json& column : json.at("columns")) {
    manifest.file.columns.push_back({column.at("name").get<std::string>(),
                                     column.at("dtype").get<std::string>(),
                                     column.at("width").get<int64_t>(),
                                     column.at("row_bytes").get<int64_t>()});
    manifest.summary.block_checksums.push_back(
        ChecksumsFromJson(column.at("block_checksums")));
  }
}

void Read(const Json& json, ShardManifest& manifest) {
  manifest.table = json.at("table").get<std::string>();
  manifest.shard_index = json.at("shard_index").get<int64_t>();
  manifest.shard_count = json.at("shard_count").get<int64_t>();
  manifest.first_row_id = json.at("first_row_id").get<int64_t>();
  manifest.row_count = json.at("row_count").get<int64_t>();
  manifest.event = json.at("event").get<int64_t>();
  manifest.base = BaseFromJson(json.at("base"));
  manifest.spec = json.at("spec");
  for (const Json& entry : json.at("trainer_counts")) {
    manifest.trainer_counts.push_back(
        {entry.at("from_event").get<int64_t>(),
         entry.at("trainer_count").get<int32_t>()});
  }
  ReadFile(json.at("file"), manifest);
  const Json& statistics = json.at("statistics");
  manifest.statistics = {statistics.at("byte_count").get<int64_t>(),
                         statistics.at("seconds").get<double>(),
                         statistics.at("before_image_row_count").get<int64_t>(),
                         statistics.at("event_wait_seconds").get<double>()};
}

// Why it is of no shard; or nothing.
std::optional<std::string> FaultOf(const ShardManifest& manifest) {
  const ShardFileShape& file = manifest.file;
  if (const absl::Status status = CheckShape(file); !status.ok()) {
    return std::string(status.message());
  }
  if (manifest.first_row_id < 0 || manifest.row_count < 0 ||
      manifest.event < 0 || manifest.shard_index < 0 ||
      manifest.shard_index >= manifest.shard_count) {
    return "a number is out of range";
  }
  const bool has_ids = std::any_of(
      file.sides.begin(), file.sides.end(), [&](const SideTensorSpec& side) {
        return side.name == kRowIds && side.dtype == "I64" &&
               side.shape == std::vector{file.row_count};
      });
  if (has_ids != manifest.base.has_value()) {
    return "it has a base or row ids, and not both";
  }
  if (has_ids ? file.row_count > manifest.row_count
              : file.row_count != manifest.row_count) {
    return absl::StrCat("the file has ", file.row_count, " rows, the shard ",
                        manifest.row_count);
  }
  if (manifest.summary.size_bytes < LayoutOf(file).data_bytes) {
    return "the file is smaller than its tensors";
  }
  for (const auto& checksums : manifest.summary.block_checksums) {
    if (static_cast<int64_t>(checksums.size()) != BlockCount(file)) {
      return "there are not as many checksums as blocks";
    }
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> MetadataOf(const ShardManifest& manifest) {
  std::map<std::string, std::string> metadata = {
      {"format", std::string(kFormat)},
      {"table", manifest.table},
      {"event", absl::StrCat(manifest.event)},
      {"shard_index", absl::StrCat(manifest.shard_index)},
      {"shard_count", absl::StrCat(manifest.shard_count)},
      {"first_row_id", absl::StrCat(manifest.first_row_id)},
      {"row_count", absl::StrCat(manifest.row_count)}};
  if (manifest.base.has_value()) {
    metadata["base_checkpoint"] = manifest.base->checkpoint;
    metadata["base_event"] = absl::StrCat(manifest.base->event);
  }
  return metadata;
}

std::string ToText(const ShardManifest& manifest) {
  Json json = BeginManifest(kFormat);
  json["table"] = manifest.table;
  json["shard_index"] = manifest.shard_index;
  json["shard_count"] = manifest.shard_count;
  json["first_row_id"] = manifest.first_row_id;
  json["row_count"] = manifest.row_count;
  json["event"] = manifest.event;
  json["base"] = BaseToJson(manifest.base);
  json["spec"] = manifest.spec;
  json["trainer_counts"] = TrainerCountsToJson(manifest.trainer_counts);
  json["file"] = {
      {"row_count", manifest.file.row_count},
      {"block_rows", manifest.file.block_rows},
      {"size_bytes", manifest.summary.size_bytes},
      {"header_checksum", ChecksumToJson(manifest.summary.header_checksum)},
      {"side_tensors", SidesToJson(manifest)},
      {"columns", ColumnsToJson(manifest)}};
  const WritingStatistics& statistics = manifest.statistics;
  json["statistics"] = {
      {"byte_count", statistics.byte_count},
      {"seconds", statistics.seconds},
      {"before_image_row_count", statistics.before_image_row_count},
      {"event_wait_seconds", statistics.event_wait_seconds}};
  return Seal(std::move(json));
}

absl::StatusOr<ShardManifest> ParseShardManifest(std::string_view file,
                                                 std::string_view text) {
  ROWHOUSE_ASSIGN_OR_RETURN(const Json json, OpenManifest(file, text, kFormat));
  ShardManifest manifest;
  ROWHOUSE_RETURN_IF_ERROR(ReadMembers(file, [&] {
    Read(json, manifest);
    return absl::OkStatus();
  }));
  if (const std::optional<std::string> fault = FaultOf(manifest)) {
    return DamagedError(file, 0, *fault);
  }
  return manifest;
}

}  // namespace rowhouse::server
