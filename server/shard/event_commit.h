#ifndef ROWHOUSE_SERVER_SHARD_EVENT_COMMIT_H_
#define ROWHOUSE_SERVER_SHARD_EVENT_COMMIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Whether both say the same: doubles are compared bit by bit, and the scalars
/// of a skipped event not at all.
bool SameCommit(const EventCommit& a, const EventCommit& b);

/// What decides how a commit of a table updates it.
struct UpdateRule {
  UpdateRule(GradientReduction table_reduction, bool is_dense = false)
      : reduction(table_reduction), dense(is_dense) {}
  explicit UpdateRule(const ShardSpec& spec)
      : UpdateRule(spec.reduction, spec.dense.has_value()) {}

  GradientReduction reduction;
  bool dense;
};

/// Divisor of an event's gradients: W.
inline int64_t DivisorOf(GradientReduction reduction, int32_t trainer_count) {
  return reduction == GradientReduction::kMean ? trainer_count : 1;
}

/// Checks that the update is of the table's kind, and its scalars.
///
/// Errors:
///   kInvalidArgument  BAD_COMMIT, BAD_SCALAR.
absl::Status CheckUpdate(const EventCommit& commit, const UpdateRule& rule,
                         int32_t trainer_count);

/// Checks that the scalars may be applied: each finite and in its range, and
/// all that is computed from them finite in fp32. `divisor` is W.
///
/// Errors:
///   kInvalidArgument  BAD_SCALAR: names the field, its value, what is wanted.
absl::Status CheckScalars(const kernels::RowAdamScalars& scalars,
                          int64_t divisor);
absl::Status CheckScalars(const kernels::AdamWScalars& scalars,
                          int64_t divisor);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_EVENT_COMMIT_H_
