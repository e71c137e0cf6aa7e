#ifndef ROWHOUSE_SERVER_SERVICE_HEAD_HEADER_H_
#define ROWHOUSE_SERVER_SERVICE_HEAD_HEADER_H_

#include "absl/status/statusor.h"
#include "rowhouse/v1/lm_head_service.pb.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// What a LinearCrossEntropyHeader asks for.
///
/// Errors:
///   kInvalidArgument  MALFORMED, BAD_RANK, BAD_SESSION, BAD_EVENT, BAD_DTYPE,
///                     BAD_SCALAR: names the first bad field.
absl::StatusOr<HeadHeader> ToHeadHeader(
    const v1::LinearCrossEntropyHeader& header);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_HEAD_HEADER_H_
