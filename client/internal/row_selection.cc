#include "client/internal/row_selection.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::client::internal {
namespace {

// Turns positions that are one run into that run.
void Compact(RowSelection& selection) {
  std::vector<int64_t>& positions = selection.positions;
  if (positions.empty()) return;
  const auto count = static_cast<int64_t>(positions.size());
  // Positions ascend, so the ends tell.
  if (positions.back() - positions.front() != count - 1) return;
  selection.first_position = positions.front();
  positions = {};
}

}  // namespace

void RowSelection::Gather(const std::byte* buffer, int64_t row_bytes,
                          int64_t first, int64_t count, std::byte* out) const {
  if (count == 0) return;
  if (positions.empty()) {
    std::memcpy(out, buffer + position(first) * row_bytes, count * row_bytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out + i * row_bytes, buffer + position(first + i) * row_bytes,
                row_bytes);
  }
}

void RowSelection::Scatter(const std::byte* rows, int64_t row_bytes,
                           int64_t first, int64_t count,
                           std::byte* buffer) const {
  if (count == 0) return;
  if (positions.empty()) {
    std::memcpy(buffer + position(first) * row_bytes, rows, count * row_bytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(buffer + position(first + i) * row_bytes, rows + i * row_bytes,
                row_bytes);
  }
}

absl::StatusOr<std::vector<RowSelection>> SplitRows(
    const wire::Placement& placement, std::span<const int64_t> row_ids) {
  std::vector<RowSelection> selections(placement.shard_count());
  for (size_t i = 0; i < row_ids.size(); ++i) {
    const int64_t row_id = row_ids[i];
    if (row_id < 0 || row_id >= placement.row_count()) {
      return wire::Error(
          absl::StatusCode::kOutOfRange, wire::reasons::kRowOutOfTable,
          absl::StrCat("row id ", row_id, " at position ", i,
                       ", wanted one in [0, ", placement.row_count(), ")"),
          {{"row_id", std::to_string(row_id)},
           {"position", std::to_string(i)},
           {"row_count", std::to_string(placement.row_count())}});
    }
    RowSelection& selection = selections[placement.ShardOf(row_id)];
    selection.row_ids.push_back(row_id);
    selection.positions.push_back(static_cast<int64_t>(i));
  }
  for (RowSelection& selection : selections) Compact(selection);
  return selections;
}

absl::Status CheckBufferSize(size_t found, int64_t row_count,
                             int64_t row_bytes) {
  const auto wanted = static_cast<size_t>(row_count * row_bytes);
  if (found == wanted) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadShape,
      absl::StrCat("a buffer of ", found, " bytes, wanted ", wanted, ": ",
                   row_count, " rows of ", row_bytes, " bytes"),
      {{"found_bytes", std::to_string(found)},
       {"wanted_bytes", std::to_string(wanted)}});
}

}  // namespace rowhouse::client::internal
