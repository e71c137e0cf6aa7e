#ifndef ROWHOUSE_SERVER_SHARD_ROW_RANGE_H_
#define ROWHOUSE_SERVER_SHARD_ROW_RANGE_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Turns global row ids into slots of a shard: the one check of row ids.
///
/// Immutable, so thread-safe. Must not outlive `spec`.
class RowRange {
 public:
  explicit RowRange(const ShardSpec& spec)
      : spec_(&spec),
        first_(spec.placement.first_row(spec.shard_index)),
        end_(spec.placement.end_row(spec.shard_index)) {}

  int64_t first_row_id() const { return first_; }
  int64_t row_count() const { return end_ - first_; }

  /// `slots[i]` of `row_ids[i]`, which is at `first_position + i` of its call.
  ///
  /// REQUIRES: `slots` is as long as `row_ids`.
  ///
  /// Errors:
  ///   kOutOfRange  ROW_OUT_OF_TABLE, ROW_OF_OTHER_SHARD; names the first.
  absl::Status Resolve(std::span<const int64_t> row_ids, int64_t first_position,
                       std::span<int64_t> slots) const;

  /// Checks that `[first_row_id, first_row_id + row_count)` is of this shard.
  ///
  /// REQUIRES: `row_count >= 0`.
  ///
  /// Errors: as `Resolve`.
  absl::Status CheckRange(int64_t first_row_id, int64_t row_count) const;

 private:
  absl::Status Fault(int64_t row_id, int64_t position) const;

  const ShardSpec* spec_;
  int64_t first_;
  int64_t end_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_ROW_RANGE_H_
