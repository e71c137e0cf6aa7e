#ifndef ROWHOUSE_PROTO_WIRE_PLACEMENT_H_
#define ROWHOUSE_PROTO_WIRE_PLACEMENT_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace rowhouse::wire {

/// Where the rows of a table lie: shard s owns rows [bounds[s], bounds[s + 1]),
/// possibly none.
class Placement {
 public:
  /// Shard s owns [s*row_count/shard_count, (s+1)*row_count/shard_count), both
  /// floored. Exact for every int64.
  ///
  /// REQUIRES: `row_count >= 0`, `shard_count >= 1`.
  static Placement Even(int64_t row_count, int32_t shard_count);

  /// Errors:
  ///   kInvalidArgument  BAD_BOUNDS: not `shard_count + 1` values ascending
  ///                     from 0 to `row_count`; names the first bad one.
  static absl::StatusOr<Placement> Explicit(int64_t row_count,
                                            std::span<const int64_t> bounds);

  int32_t shard_count() const {
    return static_cast<int32_t>(bounds_.size()) - 1;
  }
  int64_t row_count() const { return bounds_.back(); }
  int64_t first_row(int32_t shard) const { return bounds_[shard]; }
  int64_t end_row(int32_t shard) const { return bounds_[shard + 1]; }
  const std::vector<int64_t>& bounds() const { return bounds_; }

  /// The shard that owns `row_id`.
  ///
  /// REQUIRES: `0 <= row_id < row_count()`.
  int32_t ShardOf(int64_t row_id) const;

  friend bool operator==(const Placement&, const Placement&) = default;

 private:
  explicit Placement(std::vector<int64_t> bounds)
      : bounds_(std::move(bounds)) {}

  std::vector<int64_t> bounds_;
};

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_PLACEMENT_H_
