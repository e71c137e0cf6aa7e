#include "server/shard/sparse_store.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

SparseStore::SparseStore(const ShardSpec& spec, const ShardLimits& limits,
                         kernels::Backend& backend)
    : spec_(spec), one_sided_(limits.one_sided), backend_(backend) {
  table_.first_row_id = spec.placement.first_row(spec.shard_index);
  table_.row_count =
      spec.placement.end_row(spec.shard_index) - table_.first_row_id;
  table_.dim = spec.dim;
  table_.dtype = spec.row_dtype;
}

absl::Status SparseStore::Reset() {
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  // What others have mapped stays where it is.
  const bool fresh = !one_sided_ || weights_.data() == nullptr;
  if (fresh) ROWHOUSE_RETURN_IF_ERROR(AllocateArrays());
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.InitializeRows(table_, spec_.initializer, fresh));
  return backend_.Synchronize();
}

absl::Status SparseStore::AllocateArrays() {
  { const kernels::Buffer freed(std::move(weights_)); }
  { const kernels::Buffer freed(std::move(states_)); }
  ROWHOUSE_ASSIGN_OR_RETURN(
      weights_, AllocateWeights(backend_, table_.row_count * table_.row_bytes(),
                                one_sided_));
  ROWHOUSE_ASSIGN_OR_RETURN(
      states_,
      backend_.Allocate(table_.row_count * int64_t{sizeof(kernels::RowState)}));
  table_.weights = weights_.data();
  table_.states = states_.as<kernels::RowState>();
  return absl::OkStatus();
}

absl::Status SparseStore::WriteRows(int64_t first_slot, int64_t row_count,
                                    const void* rows) {
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.WriteRows(table_, first_slot, row_count, rows));
  return backend_.Synchronize();
}

absl::Status SparseStore::BringCurrent(const Beta2History& history,
                                       std::span<const int64_t> slots) {
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.BringCurrent(table_, history.view(), slots));
  return backend_.Synchronize();
}

absl::StatusOr<uint64_t> SparseStore::Digest(const Beta2History& history) {
  uint64_t sum = 0;
  ROWHOUSE_RETURN_IF_ERROR(backend_.Digest(table_, history.view(), sum));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  return sum;
}

absl::StatusOr<kernels::GradientStatistics> SparseStore::Statistics(
    const Events& events) {
  const std::vector<kernels::GradientPart> parts =
      events.PartsOf(events.applied() + 1);
  kernels::GradientStatistics statistics;
  ROWHOUSE_RETURN_IF_ERROR(backend_.MergedStatistics(
      parts, spec_.dim, spec_.gradient_dtype, statistics));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  return statistics;
}

absl::StatusOr<float> SparseStore::Apply(const Events& events,
                                         const EventCommit& commit,
                                         int64_t divisor,
                                         const Beta2History& history,
                                         kernels::EventReport& report) {
  const std::vector<kernels::GradientPart> parts =
      events.PartsOf(events.applied() + 1);
  kernels::RowAdamEvent event;
  event.parts = parts;
  event.gradient_dtype = spec_.gradient_dtype;
  event.factors = kernels::NarrowScalars(commit.scalars, divisor);
  event.policy = spec_.policy;
  event.history = history.view();
  ROWHOUSE_RETURN_IF_ERROR(backend_.ApplyRowAdamEvent(table_, event, report));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  return event.factors.beta2;
}

}  // namespace rowhouse::server
