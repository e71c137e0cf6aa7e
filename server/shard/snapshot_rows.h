#ifndef ROWHOUSE_SERVER_SHARD_SNAPSHOT_ROWS_H_
#define ROWHOUSE_SERVER_SHARD_SNAPSHOT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "server/shard/snapshot.h"
#include "server/shard/snapshot_chunks.h"

namespace rowhouse::server {

/// Where the columns of a block lie in a chunk, each aligned.
class ChunkLayout {
 public:
  ChunkLayout(std::vector<RowColumn> columns, int64_t block_row_count);

  const std::vector<RowColumn>& columns() const { return columns_; }
  int64_t block_row_count() const { return block_row_count_; }
  int64_t size_bytes() const { return size_bytes_; }
  int64_t offset(size_t column) const { return offsets_[column]; }

 private:
  std::vector<RowColumn> columns_;
  int64_t block_row_count_;
  std::vector<int64_t> offsets_;
  int64_t size_bytes_ = 0;
};

/// A chunk with rows; it goes back with the last who holds it.
class ChunkMemory {
 public:
  ChunkMemory(std::shared_ptr<SnapshotChunks> chunks, kernels::Buffer chunk)
      : chunks_(std::move(chunks)), chunk_(std::move(chunk)) {}
  ~ChunkMemory() { chunks_->Return(std::move(chunk_)); }
  ChunkMemory(const ChunkMemory&) = delete;
  ChunkMemory& operator=(const ChunkMemory&) = delete;

  std::byte* data() const { return chunk_.as<std::byte>(); }

 private:
  const std::shared_ptr<SnapshotChunks> chunks_;
  kernels::Buffer chunk_;
};

/// Which rows of a snapshot have been handed out, and which were put aside
/// before an event changed them. Reads the table as it is: the caller puts
/// aside what is about to change.
///
/// Rows that were put aside stay in memory until their block is handed out.
/// Where chunks are short, some of them go ahead, in turns with blocks.
///
/// Thread-compatible; pieces may go on any thread.
class SnapshotRows {
 public:
  /// Chunks that rows put aside leave to blocks: for one that is being written
  /// and one that is being read.
  static constexpr int64_t kBlockChunks = 2;

  /// `columns` are those of the store, of `shard_row_count` rows; `slots` the
  /// slots of a snapshot with a base, ascending.
  struct Source {
    kernels::Backend* backend = nullptr;
    std::vector<void*> columns;
    int64_t shard_row_count = 0;
    bool has_base = false;
    std::vector<int64_t> slots = {};
  };

  SnapshotRows(Source source, std::shared_ptr<const ChunkLayout> layout,
               std::shared_ptr<SnapshotChunks> chunks);

  int64_t row_count() const { return row_count_; }
  std::span<const int64_t> slots() const { return source_.slots; }

  /// Whether every block has been handed out.
  bool finished() const { return next_ == row_count_; }

  /// The next piece. Null when there is no chunk for it.
  ///
  /// REQUIRES: `!finished()`.
  absl::StatusOr<std::unique_ptr<SnapshotPiece>> Next();

  /// Puts aside the rows that have not been handed out, of slots in any order,
  /// repeated or not. False when there are chunks for some of them only: to be
  /// called again when one has come back.
  absl::StatusOr<bool> PutAside(std::span<const int64_t> slots);

  /// The same of all rows.
  absl::StatusOr<bool> PutAllAside();

  /// Rows that were put aside.
  int64_t put_aside_count() const { return put_aside_count_; }

 private:
  static constexpr int64_t kNone = -1;

  // Rows that were put aside together.
  struct Kept {
    std::vector<int64_t> places;          // Ascending.
    std::shared_ptr<ChunkMemory> memory;  // Null once they went ahead.
    int64_t left = 0;                     // Whose blocks are to come.
  };
  // One of them, as its block knows it.
  struct KeptRow {
    Kept* kept;
    int32_t row;       // Of `kept`.
    int32_t in_block;  // Of the block.
  };

  int64_t PlaceOf(int64_t slot) const;
  bool Waits(int64_t place) const;  // Not handed out nor put aside.
  void Mark(int64_t place);
  template <typename PlaceAt>
  absl::StatusOr<bool> PutAsideAll(int64_t count, PlaceAt place_at);
  absl::Status Keep(std::vector<int64_t> places, kernels::Buffer chunk);
  absl::Status Gather(std::span<const int64_t> places, std::byte* chunk);
  absl::Status CopyBlock(int64_t row_count, std::byte* chunk);
  std::unique_ptr<SnapshotPiece> GoAhead(Kept& kept);
  Kept* OldestInMemory();

  const Source source_;
  const std::shared_ptr<const ChunkLayout> layout_;
  const std::shared_ptr<SnapshotChunks> chunks_;
  const int64_t row_count_;
  int64_t next_ = 0;  // The first place of the next block.
  // By block, a bit a row, empty where no row of the block was put aside.
  std::vector<std::vector<bool>> marked_;
  std::vector<std::vector<KeptRow>> kept_rows_;  // By block.
  std::list<Kept> kept_;                         // The oldest first.
  bool short_of_chunks_ = false;  // Rows are to be put aside and cannot.
  bool went_ahead_ = false;       // The last piece did.
  int64_t put_aside_count_ = 0;
};

/// Slots of rows whose last event is past `event`, ascending: reads the state
/// of every row, a chunk at a time.
absl::StatusOr<std::vector<int64_t>> SlotsChangedSince(
    kernels::Backend& backend, const kernels::RowState* states,
    int64_t row_count, int64_t event, SnapshotChunks& chunks);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SNAPSHOT_ROWS_H_
