#ifndef ROWHOUSE_SERVER_CHECKPOINT_ROW_BUFFER_H_
#define ROWHOUSE_SERVER_CHECKPOINT_ROW_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "server/checkpoint/shard_file.h"

namespace rowhouse::server {

/// Memory for rows of all columns of a table. Thread-compatible.
class RowBuffer {
 public:
  /// For at most so many rows.
  RowBuffer(const std::vector<ColumnSpec>& columns, int64_t most_row_count);

  /// Spans of the first `row_count` rows of each column; valid until the next
  /// call.
  std::span<const std::span<std::byte>> First(int64_t row_count);

 private:
  const std::vector<ColumnSpec> columns_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::span<std::byte>> spans_;
};

/// Rows [first_row, first_row + row_count) of a column's `rows`.
inline std::span<std::byte> RowsOf(std::span<std::byte> rows,
                                   const ColumnSpec& column, int64_t first_row,
                                   int64_t row_count) {
  return rows.subspan(static_cast<size_t>(first_row * column.row_bytes),
                      static_cast<size_t>(row_count * column.row_bytes));
}

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_ROW_BUFFER_H_
