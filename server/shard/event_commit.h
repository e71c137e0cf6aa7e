#ifndef ROWHOUSE_SERVER_SHARD_EVENT_COMMIT_H_
#define ROWHOUSE_SERVER_SHARD_EVENT_COMMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Whether both say the same: doubles are compared bit by bit, and the scalars
/// of a skipped event not at all.
bool SameCommit(const EventCommit& a, const EventCommit& b);

/// Checks that the scalars may be applied: each finite and in its range, and
/// all that is computed from them finite in fp32. `divisor` is W.
///
/// Errors:
///   kInvalidArgument  BAD_SCALAR: names the field, its value, what is wanted.
absl::Status CheckScalars(const kernels::RowAdamScalars& scalars,
                          int64_t divisor);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_EVENT_COMMIT_H_
