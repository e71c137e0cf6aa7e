#ifndef ROWHOUSE_SERVER_TRANSPORT_INBOX_H_
#define ROWHOUSE_SERVER_TRANSPORT_INBOX_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "server/shard/shard.h"
#include "server/transport/mappings.h"

namespace rowhouse::server {

/// Bytes of an inbox that are copied out, and then landed, at a time. No row is
/// larger.
inline constexpr int64_t kStagingBytes = int64_t{4} << 20;

/// Bytes of the largest contribution of a trainer, ids and rows.
int64_t InboxBytes(const ShardSpec& spec);

/// Where a part lies in an inbox.
struct InboxPart {
  int64_t row_count = 0;
  bool has_ids = true;  ///< Else handles name the rows.
  int64_t ids_offset = 0;
  int64_t rows_offset = 0;
};

/// Errors:
///   kOutOfRange  INBOX_RANGE: it reaches out of the inbox.
absl::Status CheckInboxPart(const InboxPart& part, const Mapping& mapping);

/// Lands a part, piece by piece: each is copied to where the client cannot
/// write before anything of it is looked at.
///
/// Errors: those of `PartLanding::Append`, and the backend's.
///
/// REQUIRES: `CheckInboxPart` is OK; one part of a mapping at a time.
absl::Status LandInboxPart(const InboxPart& part, const Mapping& mapping,
                           kernels::Backend& backend, PartLanding& landing);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_INBOX_H_
