#include "server/checkpoint/checkpoint_paths.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/pending_file.h"

namespace rowhouse::server {
namespace {

constexpr size_t kMostNameBytes = 63;
constexpr std::string_view kManifestName = "manifest.json";
constexpr std::string_view kTrainersName = "trainers";
constexpr std::string_view kManifestSuffix = ".json";
constexpr std::string_view kRowsSuffix = ".safetensors";
constexpr std::string_view kStateSuffix = ".bin";
constexpr std::string_view kOf = "-of-";

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

template <typename... Parts>
std::string Join(const std::string& directory, const Parts&... parts) {
  return absl::StrCat(directory, "/", parts...);
}

bool IsName(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= kMostNameBytes &&
         name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), fits);
}

bool TakeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// A number as it is written in names.
std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(View(text), &number) || number < 0 ||
      absl::StrCat(number) != View(text)) {
    return std::nullopt;
  }
  return number;
}

// `2-of-3`.
std::optional<ShardName> ParseStem(std::string_view stem) {
  const size_t middle = stem.find(kOf);
  if (middle == std::string_view::npos) return std::nullopt;
  const auto index = NumberOf(stem.substr(0, middle));
  const auto count = NumberOf(stem.substr(middle + kOf.size()));
  if (!index.has_value() || !count.has_value() || *index >= *count) {
    return std::nullopt;
  }
  return ShardName{"", "", *index, *count};
}

std::string StemOf(const ShardName& shard) {
  return absl::StrCat(shard.index, View(kOf), shard.count);
}

}  // namespace

absl::Status CheckName(std::string_view what, std::string_view name) {
  if (IsName(name)) return absl::OkStatus();
  const std::string found = absl::CHexEscape(
      View(name.substr(0, std::min(name.size(), kMostNameBytes + 1))));
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadName,
      absl::StrCat("the name of a ", View(what), " is '", found,
                   "'; it must be 1 to ", kMostNameBytes,
                   " characters from [a-z0-9_-], the first one a letter"),
      {{"name", found}});
}

std::string CheckpointPaths::Checkpoint(std::string_view checkpoint) const {
  return Join(root_, View(checkpoint));
}

std::string CheckpointPaths::Manifest(std::string_view checkpoint) const {
  return Join(Checkpoint(checkpoint), View(kManifestName));
}

std::string CheckpointPaths::Table(std::string_view checkpoint,
                                   std::string_view table) const {
  return Join(Checkpoint(checkpoint), View(table));
}

std::string CheckpointPaths::ShardFile(const ShardName& shard) const {
  return Join(Table(shard.checkpoint, shard.table), StemOf(shard),
              View(kRowsSuffix));
}

std::string CheckpointPaths::ShardManifest(const ShardName& shard) const {
  return Join(Checkpoint(shard.checkpoint), RelativeManifestPath(shard));
}

std::string CheckpointPaths::Trainers(std::string_view checkpoint) const {
  return Join(Checkpoint(checkpoint), View(kTrainersName));
}

std::string CheckpointPaths::TrainerState(std::string_view checkpoint,
                                          int64_t rank) const {
  return Join(Trainers(checkpoint), rank, View(kStateSuffix));
}

std::string CheckpointPaths::TrainerStateManifest(std::string_view checkpoint,
                                                  int64_t rank) const {
  return Join(Trainers(checkpoint), rank, View(kManifestSuffix));
}

std::string RelativeManifestPath(const ShardName& shard) {
  return Join(shard.table, StemOf(shard), View(kManifestSuffix));
}

std::optional<ShardName> ParseShardManifestName(std::string_view file_name) {
  if (!TakeSuffix(file_name, kManifestSuffix)) return std::nullopt;
  return ParseStem(file_name);
}

std::optional<int64_t> ParseTrainerStateManifestName(
    std::string_view file_name) {
  if (!file_name.ends_with(kManifestSuffix)) return std::nullopt;
  file_name.remove_suffix(kManifestSuffix.size());
  return NumberOf(file_name);
}

bool IsFileOfCheckpoints(std::string_view file_name) {
  if (TakeSuffix(file_name, kTemporarySuffix)) {
    const size_t dot = file_name.rfind('.');
    if (dot == std::string_view::npos ||
        !ParseChecksum(file_name.substr(dot + 1)).has_value()) {
      return false;
    }
    file_name = file_name.substr(0, dot);
  }
  if (file_name == kManifestName) return true;
  if (TakeSuffix(file_name, kStateSuffix)) {
    return NumberOf(file_name).has_value();
  }
  if (TakeSuffix(file_name, kRowsSuffix)) {
    return ParseStem(file_name).has_value();
  }
  return TakeSuffix(file_name, kManifestSuffix) &&
         (ParseStem(file_name).has_value() || NumberOf(file_name).has_value());
}

}  // namespace rowhouse::server
