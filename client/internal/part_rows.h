#ifndef ROWHOUSE_CLIENT_INTERNAL_PART_ROWS_H_
#define ROWHOUSE_CLIENT_INTERNAL_PART_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "client/internal/shard_channel.h"
#include "kernels/row_table.h"

namespace rowhouse::client::internal {

/// Rows of so many bytes, an even number, as a backend can gather them.
kernels::RowTable RowsAt(const std::byte* rows, int64_t row_bytes);

/// The caller's buffer of a push, likewise.
kernels::RowTable BufferOf(const PushCall& call);

/// Copies rows [first, first + count) of the part, in its order, to host memory
/// `out`. Where they are a device's, `call.device->Synchronize()` waits for it;
/// buffer and `out` must stay until then.
absl::Status GatherPart(const PushCall& call, int64_t first, int64_t count,
                        std::byte* out);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_PART_ROWS_H_
