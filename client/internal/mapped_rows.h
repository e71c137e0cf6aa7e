#ifndef ROWHOUSE_CLIENT_INTERNAL_MAPPED_ROWS_H_
#define ROWHOUSE_CLIENT_INTERNAL_MAPPED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/row_selection.h"
#include "client/internal/shard_channel.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/dtype.h"
#include "kernels/shared_memory.h"

namespace rowhouse::client::internal {

/// What a server shares of a table's shard.
struct SharedShard {
  kernels::SharedMemory weights;
  kernels::SharedMemory epoch;
  std::optional<kernels::SharedMemory> inbox = std::nullopt;
  kernels::DType dtype = kernels::DType::kBf16;
  int64_t dim = 0;
  int64_t first_row_id = 0;
  int64_t row_count = 0;
};

/// Where a part lies in an inbox.
struct InboxPlace {
  int64_t ids_offset = 0;
  int64_t rows_offset = 0;
};

/// A shard's memory in another process, mapped into this one.
///
/// Thread-safe, but for the inbox, which takes one part at a time.
class MappedRows {
 public:
  /// Errors:
  ///   kInvalidArgument  what is shared does not fit together.
  ///   those of `Backend::Map`.
  static absl::StatusOr<std::unique_ptr<MappedRows>> Map(
      std::shared_ptr<kernels::Backend> backend, const SharedShard& shared);

  int64_t row_bytes() const { return table_.row_bytes(); }
  int64_t dim() const { return table_.dim; }

  /// Whether it is mapped by `device`, which may be null.
  bool IsOn(const kernels::Backend* device) const {
    return device == backend_.get();
  }

  /// Whether all rows between these are the shard's.
  bool Holds(const RowIdBounds& bounds) const {
    return bounds.least > bounds.greatest ||
           (bounds.least >= first_row_id_ && bounds.greatest < end_row_id_);
  }

  /// Enqueues the gather of rows to `out`: [row_ids.size(), dim]. Both may be
  /// the host's, or the backend's: nothing lies between its memory and the
  /// rows then but one kernel. `Finish` waits for it.
  ///
  /// REQUIRES: it holds the rows.
  absl::Status Gather(std::span<const int64_t> row_ids, void* out);

  /// The same, row i to row `positions[i]` of `out`, the backend's.
  absl::Status GatherTo(std::span<const int64_t> row_ids,
                        std::span<const int64_t> positions, void* out);

  /// Waits for the thread's gathers and returns the epoch as it is after them:
  /// rows are those of a read window if it is still the window's.
  absl::StatusOr<int64_t> Finish();

  /// Puts a part into the inbox: its rows and, unless there are handles, its
  /// ids. Nothing where it does not fit.
  absl::StatusOr<std::optional<InboxPlace>> Put(const PushCall& part);

  const std::byte* inbox() const { return inbox_.as<std::byte>(); }
  int64_t inbox_bytes() const { return inbox_.size_bytes(); }

  /// Copies to and from the inbox, from `offset` on. The other side may be the
  /// host's, or the backend's.
  ///
  /// REQUIRES: it is within the inbox.
  absl::Status Write(int64_t offset, std::span<const std::byte> from);
  absl::Status Read(int64_t offset, std::span<std::byte> to);

 private:
  explicit MappedRows(std::shared_ptr<kernels::Backend> backend)
      : backend_(std::move(backend)) {}

  absl::Status PutRows(const PushCall& part, std::byte* to);

  const std::shared_ptr<kernels::Backend> backend_;
  kernels::Buffer weights_;
  kernels::Buffer epoch_;
  kernels::Buffer inbox_;
  // As if it had all rows before: a slot is a global row id.
  kernels::RowTable table_;
  int64_t first_row_id_ = 0;
  int64_t end_row_id_ = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_MAPPED_ROWS_H_
