#include "server/checkpoint/row_buffer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace rowhouse::server {

RowBuffer::RowBuffer(const std::vector<ColumnSpec>& columns,
                     int64_t most_row_count)
    : columns_(columns), spans_(columns.size()) {
  for (const ColumnSpec& column : columns_) {
    memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(
        static_cast<size_t>(most_row_count * column.row_bytes)));
  }
}

std::span<const std::span<std::byte>> RowBuffer::First(int64_t row_count) {
  for (size_t i = 0; i < spans_.size(); ++i) {
    spans_[i] = {memory_[i].get(),
                 static_cast<size_t>(row_count * columns_[i].row_bytes)};
  }
  return spans_;
}

}  // namespace rowhouse::server
