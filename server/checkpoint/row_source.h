#ifndef ROWHOUSE_SERVER_CHECKPOINT_ROW_SOURCE_H_
#define ROWHOUSE_SERVER_CHECKPOINT_ROW_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/loaded_checkpoint.h"

namespace rowhouse::server {

class RowLayer;

/// The rows of a table of a checkpoint, however they lie in files: cut into
/// whatever shards, and with the newest of those that it is based on for rows
/// that did not change since.
///
/// It is fast where rows are read in ascending order, and copies nothing where
/// a read begins at the start of a block of the oldest checkpoint and ends at
/// `PieceEnd`. It holds one block of each checkpoint at a time, and of deltas
/// the ids of one shard's rows.
///
/// Thread-compatible.
class RowSource {
 public:
  /// `directory` must outlive it.
  ///
  /// Errors: those of `CheckpointDirectory::LoadChain`, and
  ///   kNotFound  NO_SUCH_CHECKPOINT: it does not have the table.
  static absl::StatusOr<std::unique_ptr<RowSource>> Open(
      const CheckpointDirectory& directory,
      const std::vector<LoadedCheckpoint>& chain, std::string_view table);

  ~RowSource();

  /// Of the checkpoint itself, the newest.
  const LoadedTable& table() const { return table_; }

  /// A side tensor of a shard of the checkpoint itself.
  ///
  /// Errors:
  ///   kNotFound  the shard has none of this name.
  absl::StatusOr<std::vector<std::byte>> ReadSide(size_t shard,
                                                  std::string_view name);

  /// The end of the rows from `first_row_id` on that lie in one block.
  ///
  /// REQUIRES: the row is in the table.
  int64_t PieceEnd(int64_t first_row_id) const;

  /// Reads rows [first_row_id, first_row_id + row_count), each column into the
  /// span of its place. Rows are checked against checksums before this returns.
  ///
  /// Errors:
  ///   kDataLoss  DAMAGED: names file and offset.
  ///
  /// REQUIRES: the rows are in the table, and each span has their size.
  absl::Status Read(int64_t first_row_id, int64_t row_count,
                    std::span<const std::span<std::byte>> columns);

 private:
  RowSource(LoadedTable table, std::string checkpoint,
            const CheckpointDirectory& directory,
            std::vector<std::unique_ptr<RowLayer>> layers);

  const LoadedTable table_;
  const std::string checkpoint_;
  const CheckpointDirectory& directory_;
  const std::vector<std::unique_ptr<RowLayer>> layers_;  // The oldest first.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_ROW_SOURCE_H_
