#include "server/shard/row_range.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {

absl::Status RowRange::Resolve(std::span<const int64_t> row_ids,
                               int64_t first_position,
                               std::span<int64_t> slots) const {
  for (size_t i = 0; i < row_ids.size(); ++i) {
    const int64_t row_id = row_ids[i];
    if (row_id < first_ || row_id >= end_) {
      return Fault(row_id, first_position + static_cast<int64_t>(i));
    }
    slots[i] = row_id - first_;
  }
  return absl::OkStatus();
}

absl::Status RowRange::CheckRange(int64_t first_row_id,
                                  int64_t row_count) const {
  if (row_count == 0) {
    // Nothing is named, but the place must be one of the table.
    if (first_row_id >= 0 && first_row_id <= spec_->placement.row_count()) {
      return absl::OkStatus();
    }
    return Fault(first_row_id, 0);
  }
  if (first_row_id < first_ || first_row_id >= end_) {
    return Fault(first_row_id, 0);
  }
  if (row_count > end_ - first_row_id) {
    return Fault(end_, end_ - first_row_id);
  }
  return absl::OkStatus();
}

absl::Status RowRange::Fault(int64_t row_id, int64_t position) const {
  const wire::Placement& placement = spec_->placement;
  if (row_id < 0 || row_id >= placement.row_count()) {
    return wire::Error(
        absl::StatusCode::kOutOfRange, wire::reasons::kRowOutOfTable,
        absl::StrCat("row id ", row_id, " at position ", position, "; ",
                     spec_->table, " has rows [0, ", placement.row_count(),
                     ")"),
        {{"row_id", absl::StrCat(row_id)},
         {"position", absl::StrCat(position)},
         {"row_count", absl::StrCat(placement.row_count())}});
  }
  const int32_t owner = placement.ShardOf(row_id);
  return wire::Error(absl::StatusCode::kOutOfRange,
                     wire::reasons::kRowOfOtherShard,
                     absl::StrCat("row id ", row_id, " at position ", position,
                                  " is of shard ", owner, "; shard ",
                                  spec_->shard_index, " of ", spec_->table,
                                  " has rows [", first_, ", ", end_, ")"),
                     {{"row_id", absl::StrCat(row_id)},
                      {"position", absl::StrCat(position)},
                      {"shard_index", absl::StrCat(owner)}});
}

}  // namespace rowhouse::server
