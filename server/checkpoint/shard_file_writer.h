#ifndef ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_WRITER_H_
#define ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/files.h"
#include "server/checkpoint/pending_file.h"
#include "server/checkpoint/shard_file.h"

namespace rowhouse::server {

/// A side tensor and its bytes.
struct SideTensor {
  SideTensorSpec spec;
  std::span<const std::byte> bytes;
};

/// Writes the rows of one shard into one safetensors file, a `PendingFile`
/// until `Finish`; destroyed earlier, it leaves nothing behind.
///
/// Errors of all: those of `File`.
///
/// Calls for different rows may be made at once, from any threads; `Finish`
/// after all of them.
class ShardFileWriter {
 public:
  struct Options {
    int64_t row_count = 0;
    int64_t block_rows = 1;
    std::vector<ColumnSpec> columns;
    std::vector<SideTensor> sides;  ///< Their bytes are used in `Create` only.
    std::map<std::string, std::string>
        metadata;  ///< For readers of safetensors.
  };

  /// Writes the header and the side tensors.
  ///
  /// Errors:
  ///   kInvalidArgument    the options are of no file (`CheckShape`), or a side
  ///                       tensor has not the bytes of its shape.
  ///   kResourceExhausted  NOT_WRITABLE: the disk has less room than the whole
  ///                       file takes.
  static absl::StatusOr<std::unique_ptr<ShardFileWriter>> Create(
      Files& files, const std::string& path, const Options& options);

  const ShardFileShape& shape() const { return shape_; }

  /// Writes rows of a column from `first_row` on to where they belong: for
  /// `ReadBack`, and not yet for good.
  ///
  /// REQUIRES: whole rows, in the file.
  absl::Status WriteAhead(size_t column, int64_t first_row,
                          std::span<const std::byte> rows);

  /// Reads rows that were written ahead.
  absl::Status ReadBack(size_t column, int64_t first_row,
                        std::span<std::byte> rows);

  /// Writes a whole block for good, and takes its checksum.
  ///
  /// REQUIRES: `rows` are those of the block. Each block is written once.
  absl::Status WriteBlock(size_t column, int64_t block,
                          std::span<const std::byte> rows);

  /// Returns when the file is there under its name, and stays after a crash.
  ///
  /// Errors:
  ///   kFailedPrecondition  a block was not written; names the first.
  absl::StatusOr<ShardFileSummary> Finish();

 private:
  ShardFileWriter(ShardFileShape shape, std::unique_ptr<PendingFile> pending);

  absl::Status WriteStart(const Options& options);
  int64_t OffsetOf(size_t column, int64_t row) const;

  const ShardFileShape shape_;
  const ShardFileLayout layout_;
  const std::unique_ptr<PendingFile> pending_;
  int64_t data_offset_ = 0;
  ShardFileSummary summary_;
  std::vector<std::vector<char>> written_;  // [column][block]
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_SHARD_FILE_WRITER_H_
