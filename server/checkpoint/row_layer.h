#ifndef ROWHOUSE_SERVER_CHECKPOINT_ROW_LAYER_H_
#define ROWHOUSE_SERVER_CHECKPOINT_ROW_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/loaded_checkpoint.h"
#include "server/checkpoint/row_buffer.h"
#include "server/checkpoint/shard_file_reader.h"

namespace rowhouse::server {

/// The rows that one checkpoint has of a table: all, or in a delta some.
///
/// Thread-compatible.
class RowLayer {
 public:
  /// `directory` must outlive it.
  RowLayer(const CheckpointDirectory& directory, std::string checkpoint,
           LoadedTable table);

  /// Overwrites those of rows [first_row_id, first_row_id + row_count) that it
  /// has. Errors and requirements: those of `RowSource::Read`.
  absl::Status Read(int64_t first_row_id, int64_t row_count,
                    std::span<const std::span<std::byte>> columns);

  /// The end of the rows from `first_row_id` on that lie in one block.
  ///
  /// REQUIRES: it is no delta.
  int64_t PieceEnd(int64_t first_row_id) const;

 private:
  // Rows as they lie in a file, and where they go: from `to` on.
  struct Run {
    int64_t place = 0;
    int64_t row_count = 0;
    int64_t to = 0;
  };

  // The shard that a row is of.
  size_t ShardOf(int64_t row_id) const;
  absl::Status OpenShard(size_t shard);
  absl::Status ReadIds(const ShardManifest& manifest);
  absl::Status ReadAll(int64_t first_row_id, int64_t row_count,
                       std::span<const std::span<std::byte>> columns);
  absl::Status ReadChanged(int64_t first_row_id, int64_t row_count,
                           std::span<const std::span<std::byte>> columns);
  // Within one block.
  absl::Status ReadRun(const Run& run,
                       std::span<const std::span<std::byte>> columns);
  absl::Status ReadBlock(int64_t block,
                         std::span<const std::span<std::byte>> columns);

  const CheckpointDirectory& directory_;
  const std::string checkpoint_;
  const LoadedTable table_;
  RowBuffer buffer_;

  std::optional<size_t> shard_;  // The open one.
  std::unique_ptr<ShardFileReader> reader_;
  std::vector<int64_t> ids_;  // Of a delta's rows, by place.
  // The one whose rows are in `buffer_`.
  std::optional<int64_t> block_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_ROW_LAYER_H_
