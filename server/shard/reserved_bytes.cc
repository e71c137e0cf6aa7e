// What a shard reserves.

#include <cstdint>
#include <limits>

#include "kernels/dtype.h"
#include "server/shard/events.h"
#include "server/shard/pulls.h"
#include "server/shard/shard.h"

namespace rowhouse::server {
namespace {

/// Bytes of not negative counts; sums and products stay at the largest int64.
struct Bytes {
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  int64_t count = 0;

  friend Bytes operator+(Bytes a, Bytes b) {
    int64_t sum = 0;
    return {__builtin_add_overflow(a.count, b.count, &sum) ? kMost : sum};
  }
  friend Bytes operator*(Bytes a, Bytes b) {
    int64_t product = 0;
    return {__builtin_mul_overflow(a.count, b.count, &product) ? kMost
                                                               : product};
  }
};

}  // namespace

int64_t Shard::ReservedBytes(const ShardSpec& spec, const ShardLimits& limits) {
  constexpr Bytes kRowState{8};  // Second moment, last event.
  constexpr Bytes kSlot{8};
  constexpr Bytes kHandleRows{2 * kSlot.count};
  const Bytes dim{spec.dim};
  const Bytes rows{spec.placement.end_row(spec.shard_index) -
                   spec.placement.first_row(spec.shard_index)};
  const Bytes row_bytes = dim * Bytes{kernels::SizeOf(spec.row_dtype)};
  const Bytes gradient_bytes =
      dim * Bytes{kernels::SizeOf(spec.gradient_dtype)};
  const Bytes trainers{spec.trainer_count};
  const Bytes contribution_rows =
      trainers * Bytes{spec.max_contribution_row_count};
  const Bytes pulls_and_imports = trainers * Bytes{Pulls::kMostPerSession} +
                                  Bytes{limits.max_anonymous_pull_count} +
                                  Bytes{kMostImports};
  const Bytes total =
      rows * (row_bytes + kRowState) +
      contribution_rows * (gradient_bytes + kSlot) * Bytes{Events::kOpen} +
      contribution_rows * kHandleRows +
      pulls_and_imports * Bytes{spec.max_pull_bytes};
  return total.count;
}

}  // namespace rowhouse::server
