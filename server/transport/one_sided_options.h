#ifndef ROWHOUSE_SERVER_TRANSPORT_ONE_SIDED_OPTIONS_H_
#define ROWHOUSE_SERVER_TRANSPORT_ONE_SIDED_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace rowhouse::server {

/// The one-sided path of a server that offers it.
struct OneSidedOptions {
  std::string backend;  ///< Kind of the memory: `cpu` or `cuda`.
  /// What one client may have of shared memory for its pushes to one table.
  int64_t max_inbox_bytes = int64_t{1} << 30;
  /// How long a server that starts tries again to make its tables, while
  /// clients of the one before may have that one's memory mapped.
  absl::Duration allocation_timeout = absl::Seconds(30);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_ONE_SIDED_OPTIONS_H_
