#include "server/checkpoint/manifest_format.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/file_errors.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kVersion = 1;

absl::Status CheckFormat(std::string_view file, const Json& json,
                         std::string_view format) {
  const auto found = json.at("format").get<std::string>();
  if (found != format) {
    return DamagedError(file, 0, absl::StrCat("it is a ", found));
  }
  const auto version = json.at("version").get<int64_t>();
  if (version != kVersion) {
    return NotReadableError(
        absl::StatusCode::kUnimplemented, file,
        absl::StrCat("it is of version ", version, "; known is ", kVersion));
  }
  return absl::OkStatus();
}

}  // namespace

Json BeginManifest(std::string_view format) {
  return {{"format", format}, {"version", kVersion}};
}

absl::StatusOr<Json> OpenManifest(std::string_view file, std::string_view text,
                                  std::string_view format) {
  ROWHOUSE_ASSIGN_OR_RETURN(Json json, Unseal(file, text));
  ROWHOUSE_RETURN_IF_ERROR(
      ReadMembers(file, [&] { return CheckFormat(file, json, format); }));
  return json;
}

Json ChecksumToJson(uint64_t checksum) { return ChecksumText(checksum); }

uint64_t ChecksumFromJson(const Json& json) {
  const std::optional<uint64_t> checksum =
      ParseChecksum(json.get<std::string>());
  if (checksum.has_value()) return *checksum;
  throw Json::other_error::create(501, "a checksum is not 16 digits", &json);
}

Json ChecksumsToJson(const std::vector<uint64_t>& checksums) {
  Json json = Json::array();
  for (const uint64_t checksum : checksums) {
    json.push_back(ChecksumToJson(checksum));
  }
  return json;
}

std::vector<uint64_t> ChecksumsFromJson(const Json& json) {
  std::vector<uint64_t> checksums;
  for (const Json& checksum : json) {
    checksums.push_back(ChecksumFromJson(checksum));
  }
  return checksums;
}

Json BaseToJson(const std::optional<BaseTable>& base) {
  if (!base.has_value()) return nullptr;
  return {{"checkpoint", base->checkpoint}, {"event", base->event}};
}

std::optional<BaseTable> BaseFromJson(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return BaseTable{json.at("checkpoint").get<std::string>(),
                   json.at("event").get<int64_t>()};
}

}  // namespace rowhouse::server
