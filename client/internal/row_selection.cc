#include "client/internal/row_selection.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/stream.h"
#include "kernels/cpu_isa.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::client::internal {
namespace {

// Answers of so much and more bypass the caches, which would not keep them.
constexpr int64_t kStreamFromBytes = 8 << 20;

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

RowIdBounds BoundsOf(std::span<const int64_t> row_ids) {
  if (row_ids.empty()) return {};
  const auto [least, greatest] = std::ranges::minmax(row_ids);
  return {least, greatest};
}

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

void RowSelection::Scatter(const kernels::HostPieces& rows, int64_t row_bytes,
                           int64_t first, int64_t count,
                           std::byte* buffer) const {
  if (count == 0) return;
  static const bool can_stream = kernels::cpu::CanStream(kernels::BestCpuIsa());
  const bool stream = can_stream && size() * row_bytes >= kStreamFromBytes;
  kernels::PieceReader reader(rows);
  const auto put = [&](int64_t row, int64_t row_count) {
    std::byte* to = buffer + position(row) * row_bytes;
    if (!stream) return reader.Copy(to, row_count * row_bytes);
    reader.Each(row_count * row_bytes, [&](std::string_view piece) {
      const auto size = static_cast<int64_t>(piece.size());
      kernels::cpu::StreamBytes(piece.data(), to, size);
      to += size;
    });
  };
  if (positions.empty()) {
    put(first, count);
  } else {
    for (int64_t i = 0; i < count; ++i) put(first + i, 1);
  }
  if (stream) kernels::cpu::EndStream();
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
  for (RowSelection& selection : selections) {
    Compact(selection);
    selection.bounds = BoundsOf(selection.row_ids);
  }
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
