#ifndef ROWHOUSE_SERVER_SERVICE_SPEC_VALIDATION_H_
#define ROWHOUSE_SERVER_SERVICE_SPEC_VALIDATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/v1/table.pb.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// `spec` with defaults filled in, and without bounds that say what the even
/// split says: two specs describe the same table if and only if these are
/// equal.
///
/// Errors:
///   kInvalidArgument  BAD_SPEC, BAD_BOUNDS: names the first bad field.
absl::StatusOr<v1::TableSpec> CanonicalSpec(const v1::TableSpec& spec,
                                            int32_t server_count);

/// What a shard of `spec` is made from.
///
/// REQUIRES: `spec` is canonical, and `0 <= shard_index < spec.shard_count()`.
ShardSpec ToShardSpec(std::string_view table, const v1::TableSpec& spec,
                      int32_t shard_index);

/// OK when the canonical specs are equal.
///
/// Errors:
///   kAlreadyExists  TABLE_DIFFERS: names the first field that differs.
absl::Status CheckSameSpec(std::string_view table,
                           const v1::TableSpec& existing,
                           const v1::TableSpec& wanted);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_SPEC_VALIDATION_H_
