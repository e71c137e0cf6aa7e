#ifndef ROWHOUSE_SERVER_CHECKPOINT_MANIFEST_H_
#define ROWHOUSE_SERVER_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/checkpoint/shard_file.h"

namespace rowhouse::server {

/// What a delta was made against: a table of an earlier checkpoint.
struct BaseTable {
  std::string checkpoint;
  int64_t event = 0;

  friend bool operator==(const BaseTable&, const BaseTable&) = default;
};

/// How many trainers contribute to each event from `from_event` on.
struct TrainerCountEntry {
  int64_t from_event = 0;
  int32_t trainer_count = 0;

  friend bool operator==(const TrainerCountEntry&,
                         const TrainerCountEntry&) = default;
};

/// What it took to write a shard's file.
struct WritingStatistics {
  int64_t byte_count = 0;
  double seconds = 0;
  int64_t before_image_row_count = 0;
  double event_wait_seconds = 0;

  friend bool operator==(const WritingStatistics&,
                         const WritingStatistics&) = default;
};

/// What the file of one shard is, and what it is of.
struct ShardManifest {
  std::string table;
  int64_t shard_index = 0;
  int64_t shard_count = 1;
  int64_t first_row_id = 0;
  int64_t row_count = 0;  ///< Of the shard.
  int64_t event = 0;
  nlohmann::json spec = nlohmann::json::object();  ///< The table's options.
  std::vector<TrainerCountEntry> trainer_counts;
  /// A delta: the file has the rows whose last event is past the base's, and
  /// their ids as side tensor `kRowIds`.
  std::optional<BaseTable> base;
  ShardFileShape file;  ///< Its `row_count` is that of the rows saved.
  ShardFileSummary summary;
  WritingStatistics statistics;

  friend bool operator==(const ShardManifest&, const ShardManifest&) = default;
};

/// A table of a checkpoint.
struct TableEntry {
  struct Shard {
    std::string path;  ///< Of its manifest, from the checkpoint's directory.
    uint64_t checksum = 0;  ///< Of all of that file.

    friend bool operator==(const Shard&, const Shard&) = default;
  };

  std::string table;
  int64_t event = 0;
  std::optional<BaseTable> base;
  std::vector<Shard> shards;  ///< By index.

  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

/// The state that a trainer handed in.
struct TrainerStateEntry {
  int64_t rank = 0;
  int64_t size_bytes = 0;
  uint64_t checksum = 0;

  friend bool operator==(const TrainerStateEntry&,
                         const TrainerStateEntry&) = default;
};

/// What a checkpoint is; it is whole once this is there.
struct Manifest {
  std::string checkpoint;
  int64_t step = 0;  ///< The trainers' own count; says nothing to Rowhouse.
  absl::Time created_time;
  std::string base;  ///< The checkpoint that tables are based on; or empty.
  std::vector<TableEntry> tables;                 ///< By name.
  std::vector<TrainerStateEntry> trainer_states;  ///< By rank, from 0.

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// What the header of the shard's data file says of it to whoever has no
/// manifest; for `ShardFileWriter::Options`.
std::map<std::string, std::string> MetadataOf(const ShardManifest& manifest);

// The one text of each, and back.
//
// Errors of parsing:
//   kDataLoss       DAMAGED: names `file` and, where it can, the offset.
//   kUnimplemented  NOT_READABLE: it is of a later version of the format.

std::string ToText(const ShardManifest& manifest);
absl::StatusOr<ShardManifest> ParseShardManifest(std::string_view file,
                                                 std::string_view text);

std::string ToText(const Manifest& manifest);
absl::StatusOr<Manifest> ParseManifest(std::string_view file,
                                       std::string_view text);

std::string ToText(const TrainerStateEntry& state);
absl::StatusOr<TrainerStateEntry> ParseTrainerState(std::string_view file,
                                                    std::string_view text);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_MANIFEST_H_
