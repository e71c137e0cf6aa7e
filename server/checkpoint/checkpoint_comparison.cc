#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/loaded_checkpoint.h"
#include "server/checkpoint/progress_count.h"
#include "server/checkpoint/row_buffer.h"
#include "server/checkpoint/row_source.h"

namespace rowhouse::server {
namespace {

using Columns = std::span<const std::span<std::byte>>;

bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool SameRow(const std::vector<ColumnSpec>& specs, Columns a, Columns b,
             int64_t row) {
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!Same(RowsOf(a[i], specs[i], row, 1), RowsOf(b[i], specs[i], row, 1))) {
      return false;
    }
  }
  return true;
}

void CountDifferences(const std::vector<ColumnSpec>& specs, Columns a,
                      Columns b, int64_t first_row_id, int64_t row_count,
                      TableDiff& diff) {
  bool all_same = true;
  for (size_t i = 0; i < specs.size(); ++i) {
    all_same = all_same && Same(a[i], b[i]);
  }
  for (int64_t row = 0; !all_same && row < row_count; ++row) {
    if (SameRow(specs, a, b, row)) continue;
    ++diff.differing_row_count;
    if (!diff.first_differing_row_id.has_value()) {
      diff.first_differing_row_id = first_row_id + row;
    }
  }
}

absl::Status CompareRows(RowSource& a, RowSource& b, ProgressCount& progress,
                         TableDiff& diff) {
  const std::vector<ColumnSpec>& columns = a.table().columns();
  const int64_t row_count = a.table().row_count();
  int64_t most = 0;
  for (int64_t row = 0; row < row_count;) {
    const int64_t end = a.PieceEnd(row);
    most = std::max(most, end - row);
    row = end;
  }
  RowBuffer a_rows(columns, most);
  RowBuffer b_rows(columns, most);
  for (int64_t row = 0; row < row_count;) {
    const int64_t count = a.PieceEnd(row) - row;
    const Columns found = a_rows.First(count);
    const Columns other = b_rows.First(count);
    ROWHOUSE_RETURN_IF_ERROR(a.Read(row, count, found));
    ROWHOUSE_RETURN_IF_ERROR(b.Read(row, count, other));
    CountDifferences(columns, found, other, row, count, diff);
    ROWHOUSE_RETURN_IF_ERROR(progress.Add(2 * count * RowBytesOf(columns)));
    row += count;
  }
  return absl::OkStatus();
}

using Chain = std::vector<LoadedCheckpoint>;

// All tables of either, by name, with all but their rows compared.
std::map<std::string, TableDiff> ShapesOf(const Chain& a, const Chain& b) {
  std::map<std::string, TableDiff> diffs;
  for (const LoadedTable& table : a.back().tables) {
    diffs[table.entry.table].event = table.entry.event;
  }
  for (const LoadedTable& table : b.back().tables) {
    diffs[table.entry.table].other_event = table.entry.event;
  }
  for (auto& [name, diff] : diffs) {
    diff.table = name;
    const LoadedTable* found = a.back().Find(name);
    const LoadedTable* other = b.back().Find(name);
    diff.shape_differs = found != nullptr && other != nullptr &&
                         (found->row_count() != other->row_count() ||
                          found->columns() != other->columns());
  }
  return diffs;
}

bool Comparable(const TableDiff& diff) {
  return diff.event.has_value() && diff.other_event.has_value() &&
         !diff.shape_differs;
}

}  // namespace

absl::StatusOr<std::vector<TableDiff>> CheckpointDirectory::Diff(
    std::string_view checkpoint, std::string_view other,
    FileProgress progress) {
  ROWHOUSE_ASSIGN_OR_RETURN(const Chain chain, LoadChain(checkpoint));
  ROWHOUSE_ASSIGN_OR_RETURN(const Chain other_chain, LoadChain(other));
  std::map<std::string, TableDiff> diffs = ShapesOf(chain, other_chain);
  int64_t total_bytes = 0;
  for (const auto& [name, diff] : diffs) {
    if (!Comparable(diff)) continue;
    const LoadedTable& table = *chain.back().Find(name);
    total_bytes += 2 * table.row_count() * RowBytesOf(table.columns());
  }
  ProgressCount count(total_bytes, progress);
  std::vector<TableDiff> result;
  for (auto& [name, diff] : diffs) {
    if (Comparable(diff)) {
      ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> a,
                                RowSource::Open(*this, chain, name));
      ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<RowSource> b,
                                RowSource::Open(*this, other_chain, name));
      ROWHOUSE_RETURN_IF_ERROR(CompareRows(*a, *b, count, diff));
    }
    result.push_back(std::move(diff));
  }
  return result;
}

}  // namespace rowhouse::server
