#ifndef ROWHOUSE_CLIENT_INTERNAL_ROW_SELECTION_H_
#define ROWHOUSE_CLIENT_INTERNAL_ROW_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/host_pieces.h"
#include "proto/wire/placement.h"

namespace rowhouse::client::internal {

/// Between which a list's row ids are.
struct RowIdBounds {
  int64_t least = 0;
  int64_t greatest = -1;  ///< Below `least`: there is none.
};

/// One shard's share of a list of row ids, in the order of the list.
struct RowSelection {
  std::vector<int64_t> row_ids;
  /// Where they stand in the list; empty when that is one run from
  /// `first_position` on.
  std::vector<int64_t> positions;
  int64_t first_position = 0;
  RowIdBounds bounds = {};

  int64_t size() const { return static_cast<int64_t>(row_ids.size()); }
  int64_t position(int64_t i) const {
    return positions.empty() ? first_position + i : positions[i];
  }

  /// Copies rows [first, first + count) of the selection out of `buffer`, which
  /// holds a row for each id of the list, to `out`.
  void Gather(const std::byte* buffer, int64_t row_bytes, int64_t first,
              int64_t count, std::byte* out) const;

  /// Copies them from `rows`, which may be cut anywhere, to their places in
  /// `buffer`.
  void Scatter(const kernels::HostPieces& rows, int64_t row_bytes,
               int64_t first, int64_t count, std::byte* buffer) const;
};

RowIdBounds BoundsOf(std::span<const int64_t> row_ids);

/// Splits `row_ids` over the shards of a table; one selection a shard.
///
/// Errors:
///   kOutOfRange  ROW_OUT_OF_TABLE: names the first bad position.
absl::StatusOr<std::vector<RowSelection>> SplitRows(
    const wire::Placement& placement, std::span<const int64_t> row_ids);

/// Checks that a buffer of `found` bytes is that of `row_count` rows.
///
/// Errors:
///   kInvalidArgument  BAD_SHAPE.
absl::Status CheckBufferSize(size_t found, int64_t row_count,
                             int64_t row_bytes);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_ROW_SELECTION_H_
