#ifndef ROWHOUSE_SERVER_SERVICE_PAYLOAD_H_
#define ROWHOUSE_SERVER_SERVICE_PAYLOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace rowhouse::server {

/// Where a stream message's rows stand in their call.
struct PayloadPosition {
  int64_t first_row = 0;     ///< What the message says.
  int64_t rows_before = 0;   ///< What was sent before it.
  int64_t rows_of_call = 0;  ///< What the header announced.
};

/// The count of rows in a payload.
///
/// Errors:
///   kInvalidArgument  BAD_SHAPE: more than 1 MiB, or not whole rows.
///                     BAD_OFFSET: `first_row` is not `rows_before`.
///                     BAD_COUNT: more rows than announced.
absl::StatusOr<int64_t> PayloadRowCount(int64_t payload_bytes,
                                        int64_t row_bytes,
                                        const PayloadPosition& position);

/// OK when all announced rows have come.
///
/// Errors:
///   kInvalidArgument  BAD_COUNT.
absl::Status CheckAllRowsCame(int64_t came, int64_t announced);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_PAYLOAD_H_
