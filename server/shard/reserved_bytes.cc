// What a shard reserves.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/dtype.h"
#include "server/shard/class_weights.h"
#include "server/shard/dense_store.h"
#include "server/shard/events.h"
#include "server/shard/head_calls.h"
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

// A target, a predicted row, four statistics, five values merged.
constexpr Bytes kTokenBytes{52};
constexpr Bytes kSlot{8};
constexpr int64_t kMostReadBytes = 1 << 20;  // Of rows, in one message.
// The epoch word of shared rows, and what rounding the rows may take: two of a
// GPU's pages.
constexpr int64_t kSharingBytes = int64_t{4} << 20;
constexpr float kSomeBias = 0;

Bytes ContributionRows(const ShardSpec& spec) {
  return Bytes{spec.trainer_count} * Bytes{spec.max_contribution_row_count};
}

Bytes GradientBytes(const ShardSpec& spec) {
  return Bytes{spec.dim} * Bytes{kernels::SizeOf(spec.gradient_dtype)};
}

// Hidden states of all head tokens of a trainer, in the widest type.
Bytes HiddenBytes(const ShardSpec& spec) {
  if (!spec.dense.has_value()) return {0};
  return Bytes{spec.dense->max_head_token_count} * Bytes{spec.dim} *
         Bytes{sizeof(float)};
}

// Class weights of every row; none without a head.
Bytes ClassWeightBytes(const ShardSpec& spec) {
  if (!spec.dense.has_value() || spec.dense->max_head_token_count == 0) {
    return {0};
  }
  return Bytes{spec.placement.end_row(spec.shard_index) -
               spec.placement.first_row(spec.shard_index)} *
         Bytes{sizeof(float)};
}

// Of every trainer the tokens of two events, with one event's hidden gradients
// and statistics on their way, and the calls that stage nothing; class weights;
// and logit gradients that are kept.
Bytes HeadBytes(const ShardSpec& spec, const ShardLimits& limits) {
  if (!spec.dense.has_value()) return {0};
  const Bytes tokens{spec.dense->max_head_token_count};
  const Bytes hidden = HiddenBytes(spec);
  const Bytes one = tokens * kTokenBytes + hidden;
  const Bytes trainers{spec.trainer_count};
  constexpr Bytes kOthers{HeadCalls::kMostPerSession};
  return trainers * (one * (Bytes{Events::kOpen} + kOthers) +
                     hidden * (Bytes{1} + kOthers)) +
         Bytes{limits.max_anonymous_head_call_count} * one +
         Bytes{ClassWeightSets::kMost} * ClassWeightBytes(spec) +
         Bytes{DenseStore::KeptBytes(spec, limits)};
}

}  // namespace

int64_t Shard::ReservedBytes(const ShardSpec& spec, const ShardLimits& limits) {
  constexpr int64_t kRowState = 8;  // Second moment, last event.
  constexpr Bytes kHandleRows{2 * kSlot.count};
  const Bytes rows{spec.placement.end_row(spec.shard_index) -
                   spec.placement.first_row(spec.shard_index)};
  const Bytes row_bytes{spec.dense.has_value()
                            ? DenseStore::RowBytes(spec)
                            : spec.dim * kernels::SizeOf(spec.row_dtype) +
                                  kRowState};
  const Bytes trainers{spec.trainer_count};
  const Bytes contribution_rows = ContributionRows(spec);
  const Bytes pulls_and_imports = trainers * Bytes{Pulls::kMostPerSession} +
                                  Bytes{limits.max_anonymous_pull_count} +
                                  Bytes{kMostImports};
  const Bytes total =
      rows * row_bytes + HeadBytes(spec, limits) +
      contribution_rows * (GradientBytes(spec) + kSlot) * Bytes{Events::kOpen} +
      contribution_rows * kHandleRows +
      pulls_and_imports * Bytes{spec.max_pull_bytes} +
      Bytes{limits.one_sided ? kSharingBytes : 0};
  return total.count;
}

kernels::ScratchNeeds Shard::ScratchNeeds(const ShardSpec& spec,
                                          const ShardLimits& limits) {
  const int64_t row_bytes = spec.dim * kernels::SizeOf(spec.row_dtype);
  kernels::ScratchNeeds needs;
  needs.dim = spec.dim;
  needs.slot_count = spec.max_pull_bytes / row_bytes;
  needs.host_bytes = std::max(kMostReadBytes, row_bytes);
  if (!spec.dense.has_value()) {
    needs.entry_count = ContributionRows(spec).count;
    return needs;
  }
  // Parts are folded one by one.
  needs.entry_count = spec.max_contribution_row_count;
  needs.head = kernels::HeadSlice{
      .dtype = spec.row_dtype,
      .bias = spec.dense->has_bias ? &kSomeBias : nullptr,
      .row_count = spec.placement.end_row(spec.shard_index) -
                   spec.placement.first_row(spec.shard_index),
      .dim = spec.dim};
  needs.token_count = spec.dense->max_head_token_count;
  needs.blocks = limits.head_blocks;
  return needs;
}

int64_t Shard::RecordingBytes(const ShardSpec& spec) {
  constexpr Bytes kEvents{2};
  const Bytes rows = ContributionRows(spec) * (GradientBytes(spec) + kSlot);
  const Bytes tokens{spec.dense.has_value() ? spec.dense->max_head_token_count
                                            : 0};
  const Bytes head =
      Bytes{spec.trainer_count} * (tokens * kTokenBytes + HiddenBytes(spec));
  const Bytes weights = Bytes{ClassWeightSets::kMost} * ClassWeightBytes(spec);
  return (kEvents * (rows + head + weights)).count;
}

}  // namespace rowhouse::server
