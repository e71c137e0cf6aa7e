#ifndef ROWHOUSE_SERVER_SERVICE_PULL_REQUEST_H_
#define ROWHOUSE_SERVER_SERVICE_PULL_REQUEST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "rowhouse/v1/row_service.pb.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Bytes of a row as it is pulled.
int64_t PulledRowBytes(const ShardSpec& spec);

/// A PullRows request, checked against the table.
///
/// Errors:
///   kInvalidArgument  MALFORMED, BAD_HANDLE, BAD_EVENT, PULL_TOO_LARGE,
///                     BAD_RANK, BAD_SESSION.
///   kOutOfRange       ROW_OUT_OF_TABLE, ROW_OF_OTHER_SHARD.
absl::StatusOr<PullRequest> ToPullRequest(const v1::PullRowsRequest& request,
                                          const Shard& shard);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_PULL_REQUEST_H_
