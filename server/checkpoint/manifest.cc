#include "server/checkpoint/manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/manifest_format.h"
#include "server/checkpoint/sealed_json.h"

namespace rowhouse::server {
namespace {

constexpr std::string_view kFormat = "rowhouse-checkpoint";
constexpr std::string_view kTrainerFormat = "rowhouse-checkpoint-trainer-state";

Json TableToJson(const TableEntry& table) {
  Json shards = Json::array();
  for (const TableEntry::Shard& shard : table.shards) {
    shards.push_back(
        {{"path", shard.path}, {"checksum", ChecksumToJson(shard.checksum)}});
  }
  return {{"table", table.table},
          {"event", table.event},
          {"base", BaseToJson(table.base)},
          {"shards", std::move(shards)}};
}

TableEntry TableFromJson(const Json& json) {
  TableEntry table;
  table.table = json.at("table").get<std::string>();
  table.event = json.at("event").get<int64_t>();
  table.base = BaseFromJson(json.at("base"));
  for (const Json& shard : json.at("shards")) {
    table.shards.push_back({shard.at("path").get<std::string>(),
                            ChecksumFromJson(shard.at("checksum"))});
  }
  return table;
}

void AddMembers(const TrainerStateEntry& state, Json& json) {
  json["rank"] = state.rank;
  json["size_bytes"] = state.size_bytes;
  json["state_checksum"] = ChecksumToJson(state.checksum);
}

TrainerStateEntry StateFromJson(const Json& json) {
  return {json.at("rank").get<int64_t>(), json.at("size_bytes").get<int64_t>(),
          ChecksumFromJson(json.at("state_checksum"))};
}

absl::Status Read(std::string_view file, const Json& json, Manifest& manifest) {
  manifest.checkpoint = json.at("checkpoint").get<std::string>();
  manifest.step = json.at("step").get<int64_t>();
  const auto time = json.at("created_time").get<std::string>();
  std::string fault;
  if (!absl::ParseTime(absl::RFC3339_full, time, &manifest.created_time,
                       &fault)) {
    return DamagedError(file, 0, absl::StrCat("created_time: ", fault));
  }
  manifest.base = json.at("base").get<std::string>();
  for (const Json& table : json.at("tables")) {
    manifest.tables.push_back(TableFromJson(table));
    const TableEntry& entry = manifest.tables.back();
    if (entry.base.has_value() && entry.base->checkpoint != manifest.base) {
      return DamagedError(
          file, 0, absl::StrCat("table ", entry.table, " has another base"));
    }
  }
  for (const Json& state : json.at("trainer_states")) {
    manifest.trainer_states.push_back(StateFromJson(state));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToText(const Manifest& manifest) {
  Json json = BeginManifest(kFormat);
  json["checkpoint"] = manifest.checkpoint;
  json["step"] = manifest.step;
  json["created_time"] = absl::FormatTime(
      absl::RFC3339_full, manifest.created_time, absl::UTCTimeZone());
  json["base"] = manifest.base;
  json["tables"] = Json::array();
  for (const TableEntry& table : manifest.tables) {
    json["tables"].push_back(TableToJson(table));
  }
  json["trainer_states"] = Json::array();
  for (const TrainerStateEntry& state : manifest.trainer_states) {
    Json entry;
    AddMembers(state, entry);
    json["trainer_states"].push_back(std::move(entry));
  }
  return Seal(std::move(json));
}

absl::StatusOr<Manifest> ParseManifest(std::string_view file,
                                       std::string_view text) {
  ROWHOUSE_ASSIGN_OR_RETURN(const Json json, OpenManifest(file, text, kFormat));
  Manifest manifest;
  ROWHOUSE_RETURN_IF_ERROR(
      ReadMembers(file, [&] { return Read(file, json, manifest); }));
  return manifest;
}

std::string ToText(const TrainerStateEntry& state) {
  Json json = BeginManifest(kTrainerFormat);
  AddMembers(state, json);
  return Seal(std::move(json));
}

absl::StatusOr<TrainerStateEntry> ParseTrainerState(std::string_view file,
                                                    std::string_view text) {
  ROWHOUSE_ASSIGN_OR_RETURN(const Json json,
                            OpenManifest(file, text, kTrainerFormat));
  TrainerStateEntry state;
  ROWHOUSE_RETURN_IF_ERROR(ReadMembers(file, [&] {
    state = StateFromJson(json);
    return absl::OkStatus();
  }));
  return state;
}

}  // namespace rowhouse::server
