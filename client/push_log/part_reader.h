#ifndef ROWHOUSE_CLIENT_PUSH_LOG_PART_READER_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_PART_READER_H_

#include "absl/status/statusor.h"
#include "client/internal/record_stream.h"
#include "client/push_log/log_reader.h"
#include "client/push_log/log_scan.h"

namespace rowhouse::client::push_log {

/// Reads a part in one piece, as its trainer gave it but for the order of rows:
/// those of shard 0 come first, then those of shard 1, and so on. Entries of
/// one row keep their order, for they lie on one shard. Leaves `reader` where
/// it was.
absl::StatusOr<internal::RecordedPart> ReadPart(const PartPlace& place,
                                                LogReader& reader);

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_PART_READER_H_
