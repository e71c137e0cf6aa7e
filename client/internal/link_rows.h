#ifndef ROWHOUSE_CLIENT_INTERNAL_LINK_ROWS_H_
#define ROWHOUSE_CLIENT_INTERNAL_LINK_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "client/internal/server_link.h"
#include "client/internal/shard_channel.h"

namespace rowhouse::client::internal {

/// Rows of a pull that come over a link.
struct LinkedRows {
  int64_t row_count = 0;
  int64_t row_bytes = 0;
};

/// How a transfer ended.
struct TransferEnd {
  absl::Status link;    ///< OK, or what the link failed with.
  absl::Status caller;  ///< OK, or what the caller's sink ended it with.
  bool sunk = false;    ///< Rows have been handed to the sink.
  bool landed = false;  ///< Rows are where `call` wants them.
};

/// Receives rows to where `call` wants them, on the host or the link's device,
/// or hands them to `sink`: so where it does not say, and where it has a
/// handle, since only the sink knows how many rows that has.
TransferEnd ReceiveRows(const ServerLink::Transfer& transfer,
                        const kernels::LinkPieces::Patience& patience,
                        const LinkedRows& rows, const PullCall& call,
                        RowSink sink);

/// Sends rows that lie together, straight from there where the link reaches
/// them.
absl::Status SendTogether(const ServerLink::Transfer& transfer,
                          const kernels::LinkPieces::Patience& patience,
                          const std::byte* rows, int64_t row_count,
                          int64_t row_bytes);

/// Sends the rows of a part, straight from the caller's buffer where the link
/// reaches it and they lie together there.
absl::Status SendRows(const ServerLink::Transfer& transfer,
                      const kernels::LinkPieces::Patience& patience,
                      const PushCall& call);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_LINK_ROWS_H_
