#ifndef ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_READER_H_
#define ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/files.h"
#include "server/checkpoint/shard_file.h"

namespace rowhouse::server {

/// Reads the file of one shard, and checks all that it reads.
///
/// Errors of all: those of `File`, and
///   kDataLoss  DAMAGED: names the file, the offset of what is not what was
///              written, and the tensor.
///
/// Reads may be made at once, from any threads.
class ShardFileReader {
 public:
  /// Checks the file's size and header.
  ///
  /// Errors:
  ///   kDataLoss  DAMAGED, for a file that is missing too.
  static absl::StatusOr<std::unique_ptr<ShardFileReader>> Open(
      Files& files, const std::string& path, const ShardFileShape& shape,
      const ShardFileSummary& summary);

  const std::string& path() const { return path_; }
  const ShardFileShape& shape() const { return shape_; }

  /// Fills `rows` with a block of a column.
  ///
  /// REQUIRES: `rows` has the size of the block.
  absl::Status ReadBlock(size_t column, int64_t block,
                         std::span<std::byte> rows);

  absl::StatusOr<std::vector<std::byte>> ReadSide(size_t side);

  /// The index of a side tensor; nothing where there is none of this name.
  std::optional<size_t> FindSide(std::string_view name) const;
  /// Where a side tensor begins in the file.
  int64_t SideOffset(size_t side) const {
    return data_offset_ + layout_.side_offsets[side];
  }

 private:
  ShardFileReader(std::string path, ShardFileShape shape,
                  ShardFileSummary summary);

  absl::Status OpenFiles(Files& files);
  absl::Status CheckStart();
  int64_t OffsetOf(size_t column, int64_t block) const;

  const std::string path_;
  const ShardFileShape shape_;
  const ShardFileSummary summary_;
  const ShardFileLayout layout_;
  const int64_t data_offset_;
  std::unique_ptr<File> file_;
  // One a column: the system reads ahead of each by itself.
  std::vector<std::unique_ptr<File>> column_files_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_READER_H_
