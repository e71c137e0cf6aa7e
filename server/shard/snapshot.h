#ifndef ROWHOUSE_SERVER_SHARD_SNAPSHOT_H_
#define ROWHOUSE_SERVER_SHARD_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// One array of a table's rows: `row_bytes` a row, `width` elements, or one
/// where `width` is 0.
struct RowColumn {
  std::string name;   ///< "weights", "row_state", "first_moment", ...
  std::string dtype;  ///< As safetensors has it: "BF16", "F16", "F32", "I32".
  int64_t width = 0;
  int64_t row_bytes = 0;

  friend bool operator==(const RowColumn&, const RowColumn&) = default;
};

/// The columns of a table's rows, in order. A sparse table has `weights` and
/// `row_state` (I32 [_, 2]: the bits of the fp32 second moment, the last event
/// that updated it); a dense one `weights`, `master` if it has one,
/// `first_moment`, `second_moment`, and with a bias `bias`,
/// `bias_first_moment`, `bias_second_moment`.
std::vector<RowColumn> RowColumnsOf(const ShardSpec& spec);

/// Bytes of a row in all columns.
int64_t RowBytesOf(std::span<const RowColumn> columns);

/// What a shard is as of an event, beside its rows.
struct ShardState {
  int64_t event = 0;
  std::vector<float> beta2;  ///< Of events 1 .. event; a skipped one has 1.
  std::vector<TrainerCountChange> trainer_counts;
};

/// Asks for a shard's rows as of an event.
struct SnapshotRequest {
  struct Base {
    std::string name;
    int64_t event = 0;  ///< As of which it is.
  };

  /// Stands for the state that is written. Whether another snapshot may be
  /// based on it, this shard remembers as long as it lives.
  std::string name;
  int64_t event = 0;  ///< At or past the last applied.
  /// A snapshot of this shard, or one it was restored from: of a sparse table
  /// only rows whose last event is past that one's event are handed out.
  std::optional<Base> base = std::nullopt;
  int64_t block_row_count = 1;  ///< Rows of a block.
  /// Host memory for pieces: as many blocks as it holds, at least six.
  int64_t buffer_bytes = 0;
};

/// Rows of a snapshot, in host memory. Gives it back when destroyed; until then
/// the snapshot has less.
///
/// Places are indices among the rows of the snapshot: slots of the shard, or
/// with a base indices among the rows that changed.
class SnapshotPiece {
 public:
  virtual ~SnapshotPiece() = default;

  /// Rows that events have changed since, ahead of their blocks, for want of
  /// memory to keep them in; else a whole block.
  virtual bool before_images() const = 0;
  /// Of each row, ascending. Of a block: its rows that went ahead; what `rows`
  /// has of them is newer and not to be taken.
  virtual std::span<const int64_t> places() const = 0;
  /// Of a block.
  virtual int64_t first_place() const = 0;
  virtual int64_t row_count() const = 0;
  /// Of a block: gives `rows` those that events have changed since and that
  /// were kept in memory. To be called once, before `rows` is read.
  virtual void TakeKeptRows() = 0;
  /// [row_count, row_bytes] of a column.
  virtual std::span<std::byte> rows(size_t column) = 0;
};

struct SnapshotStatistics {
  int64_t before_image_row_count = 0;
  /// For how long commits have waited for room for before-images.
  absl::Duration event_wait;
};

/// The rows of a shard as of one event, while events go on: rows that an event
/// is about to change and that have not been handed out are put aside, as
/// before-images: they are kept for their blocks, and where memory is short go
/// ahead of them. A commit that finds no room waits; it is not recorded until
/// there is. Destroying the snapshot ends it.
///
/// Thread-compatible; must not outlive its shard. Pieces may go on any thread.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  // Valid once `Cut` is done.
  virtual const ShardState& state() const = 0;
  virtual int64_t row_count() const = 0;
  /// With a base, the slot of each place, ascending; else empty: all slots.
  virtual std::span<const int64_t> slots() const = 0;
  /// The event of the base.
  virtual std::optional<int64_t> base_event() const = 0;

  /// Waits until the shard is at the event.
  virtual void Cut(absl::AnyInvocable<void(absl::Status)> done) = 0;

  /// Hands out the next piece, and null at the end, when every block has been.
  /// Waits until a piece has been given back, if need be. One call at a time.
  ///
  /// Errors: why the snapshot has ended: an import, a reset, the shard's end,
  /// or its call was cancelled.
  virtual void Next(Done<std::unique_ptr<SnapshotPiece>> done) = 0;

  /// The state it stands for is on disk: other snapshots may be based on it.
  virtual void NoteDurable() = 0;

  virtual SnapshotStatistics statistics() const = 0;  ///< From any thread.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SNAPSHOT_H_
