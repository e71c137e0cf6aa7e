#include "server/checkpoint_format.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/snapshot.h"

namespace rowhouse::server {

std::string ShortName(std::string_view table) {
  constexpr std::string_view kPrefix = "tables/";
  return std::string(table.substr(kPrefix.size()));
}

std::vector<ColumnSpec> FileColumnsOf(const ShardSpec& spec) {
  std::vector<ColumnSpec> columns;
  for (RowColumn& column : RowColumnsOf(spec)) {
    columns.push_back({std::move(column.name), std::move(column.dtype),
                       column.width, column.row_bytes});
  }
  return columns;
}

absl::StatusOr<nlohmann::json> SpecToJson(const v1::TableSpec& spec) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto printed =
      google::protobuf::util::MessageToJsonString(spec, &text, options);
  if (!printed.ok()) return absl::InternalError(printed.ToString());
  return nlohmann::json::parse(text);
}

absl::StatusOr<v1::TableSpec> SpecFromJson(const nlohmann::json& json) {
  v1::TableSpec spec;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(json.dump(), &spec);
  if (parsed.ok()) return spec;
  return wire::Error(
      absl::StatusCode::kDataLoss, wire::reasons::kDamaged,
      absl::StrCat("the checkpoint's spec is none: ", parsed.ToString()));
}

absl::Status TableNotSavedError(std::string_view checkpoint,
                                std::string_view table) {
  const std::string checkpoint_name = std::string(checkpoint);
  const std::string table_name = std::string(table);
  return wire::Error(absl::StatusCode::kNotFound,
                     wire::reasons::kNoSuchCheckpoint,
                     absl::StrCat("checkpoints/", checkpoint_name,
                                  " does not have tables/", table_name),
                     {{"checkpoint", checkpoint_name}, {"table", table_name}});
}

}  // namespace rowhouse::server
