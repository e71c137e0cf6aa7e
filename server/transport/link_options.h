#ifndef ROWHOUSE_SERVER_TRANSPORT_LINK_OPTIONS_H_
#define ROWHOUSE_SERVER_TRANSPORT_LINK_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace rowhouse::server {

/// The links of a server, by which clients with a GPU of their own reach it.
struct LinkOptions {
  bool offered = false;
  int64_t block_bytes = int64_t{64} << 20;  ///< Of a piece of a transfer.
  /// How long a client may take to join.
  absl::Duration join_timeout = absl::Seconds(20);
  /// How long a client may leave a transfer where it is.
  absl::Duration stall_timeout = absl::Seconds(10);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_LINK_OPTIONS_H_
