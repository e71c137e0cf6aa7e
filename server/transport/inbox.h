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

/// Bytes of a gradient row.
int64_t RowBytes(const ShardSpec& spec);

/// Bytes of the largest contribution of a trainer, ids and rows, and of what
/// clients leave between the two: rows begin at a multiple of 256 bytes.
int64_t InboxBytes(const ShardSpec& spec);

/// Bytes of the hidden states, in the widest type, and the hidden gradient of a
/// head call of as many tokens as the table allows, and 256 for each to begin
/// at a multiple of that; 0 without a head.
int64_t HeadInboxBytes(const ShardSpec& spec);

/// Errors:
///   kOutOfRange  INBOX_RANGE: `count` elements of `element_bytes`, named
///                `what`, from `offset` on reach out of the inbox.
absl::Status CheckInboxRange(const char* what, int64_t offset, int64_t count,
                             int64_t element_bytes, const Mapping& mapping);

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
/// REQUIRES: `CheckInboxPart` is OK; the caller has taken the mapping.
absl::Status LandInboxPart(const InboxPart& part, const Mapping& mapping,
                           kernels::Backend& backend, PartLanding& landing);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_INBOX_H_
