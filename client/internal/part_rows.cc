#include "client/internal/part_rows.h"

#include <span>

#include "kernels/backend.h"

namespace rowhouse::client::internal {

kernels::RowTable RowsAt(const std::byte* rows, int64_t row_bytes) {
  kernels::RowTable table;
  // Only read, as rows of 2-byte elements: what they are is all one here.
  table.weights = const_cast<std::byte*>(rows);
  table.dim = row_bytes / kernels::SizeOf(table.dtype);
  return table;
}

kernels::RowTable BufferOf(const PushCall& call) {
  return RowsAt(call.rows, call.row_bytes);
}

absl::Status GatherPart(const PushCall& call, int64_t first, int64_t count,
                        std::byte* out) {
  const RowSelection& selection = *call.selection;
  if (call.device == nullptr) {
    selection.Gather(call.rows, call.row_bytes, first, count, out);
    return absl::OkStatus();
  }
  if (selection.positions.empty()) {
    return call.device->Copy(
        call.rows + selection.position(first) * call.row_bytes, out,
        count * call.row_bytes);
  }
  return call.device->GatherRows(BufferOf(call),
                                 call.positions.subspan(first, count), out);
}

}  // namespace rowhouse::client::internal
