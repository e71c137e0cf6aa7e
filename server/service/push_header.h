#ifndef ROWHOUSE_SERVER_SERVICE_PUSH_HEADER_H_
#define ROWHOUSE_SERVER_SERVICE_PUSH_HEADER_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "rowhouse/v1/row_service.pb.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// A PushGradients header, checked against the table.
struct PushHeader {
  PartHeader part;
  std::optional<int32_t> seal_part_count;
  std::optional<EventCommit> commit;
};

/// Errors:
///   kInvalidArgument  MALFORMED, BAD_RANK, BAD_SESSION, BAD_EVENT, BAD_PART,
///                     BAD_DTYPE, BAD_COUNT, BAD_HANDLE, BAD_COMMIT.
absl::StatusOr<PushHeader> CheckPushHeader(
    const v1::PushGradientsHeader& header, const ShardSpec& spec);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_PUSH_HEADER_H_
