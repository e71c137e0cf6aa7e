#include "proto/wire/placement.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::wire {
namespace {

absl::Status BadBounds(int64_t position, int64_t found,
                       const std::string& wanted) {
  return Error(
      absl::StatusCode::kInvalidArgument, reasons::kBadBounds,
      absl::StrCat("bound ", position, " is ", found, "; it must be ", wanted),
      {{"position", absl::StrCat(position)}, {"bound", absl::StrCat(found)}});
}

}  // namespace

Placement Placement::Even(int64_t row_count, int32_t shard_count) {
  std::vector<int64_t> bounds;
  bounds.reserve(static_cast<size_t>(shard_count) + 1);
  for (int64_t shard = 0; shard <= shard_count; ++shard) {
    // 63 bits by 32 bits.
    const auto product = static_cast<unsigned __int128>(row_count) *
                         static_cast<unsigned __int128>(shard);
    bounds.push_back(static_cast<int64_t>(
        product / static_cast<unsigned __int128>(shard_count)));
  }
  return Placement(std::move(bounds));
}

absl::StatusOr<Placement> Placement::Explicit(int64_t row_count,
                                              std::span<const int64_t> bounds) {
  if (bounds.size() < 2) {
    return Error(absl::StatusCode::kInvalidArgument, reasons::kBadBounds,
                 absl::StrCat(bounds.size(),
                              " bounds; there must be one more than shards"),
                 {{"bound_count", absl::StrCat(bounds.size())}});
  }
  if (bounds.front() != 0) return BadBounds(0, bounds.front(), "0");
  for (size_t i = 1; i < bounds.size(); ++i) {
    const auto position = static_cast<int64_t>(i);
    if (bounds[i] < bounds[i - 1] || bounds[i] > row_count) {
      return BadBounds(position, bounds[i],
                       absl::StrCat("in [", bounds[i - 1], ", ", row_count,
                                    "], the last bound and the row count"));
    }
  }
  if (bounds.back() != row_count) {
    return BadBounds(static_cast<int64_t>(bounds.size()) - 1, bounds.back(),
                     absl::StrCat(row_count, ", the row count"));
  }
  return Placement(std::vector<int64_t>(bounds.begin(), bounds.end()));
}

int32_t Placement::ShardOf(int64_t row_id) const {
  // The first bound past the row ends its shard; empty shards lie before it.
  const auto end = std::upper_bound(bounds_.begin(), bounds_.end(), row_id);
  return static_cast<int32_t>(end - bounds_.begin()) - 1;
}

}  // namespace rowhouse::wire
