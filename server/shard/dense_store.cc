#include "server/shard/dense_store.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

int64_t DenseStore::RowBytes(const ShardSpec& spec) {
  const DenseSpec& dense = *spec.dense;
  const int64_t floats = dense.has_master ? 3 : 2;  // Master and moments.
  const int64_t bias = dense.has_bias ? 4 * kFloatBytes : 0;
  return spec.dim * (kernels::SizeOf(spec.row_dtype) + floats * kFloatBytes +
                     kernels::SizeOf(dense.main_grad_dtype)) +
         bias;
}

int64_t DenseStore::KeptBytes(const ShardSpec& spec,
                              const ShardLimits& limits) {
  const int64_t rows = spec.placement.end_row(spec.shard_index) -
                       spec.placement.first_row(spec.shard_index);
  const int64_t tokens = spec.dense->max_head_token_count;
  // Of every trainer one call of all its tokens, of the widest type. In fp64
  // first: counts of integers may not hold it.
  const double least = 4.0 * static_cast<double>(tokens) *
                       static_cast<double>(rows) * spec.trainer_count;
  if (least >= static_cast<double>(limits.logits_budget_bytes)) {
    return limits.logits_budget_bytes;
  }
  kernels::HeadSlice slice;
  slice.dtype = kernels::DType::kFp32;
  slice.row_count = rows;
  constexpr float kSomeBias = 0;
  slice.bias = spec.dense->has_bias ? &kSomeBias : nullptr;
  const int64_t call =
      kernels::HeadKept::Of(slice, tokens, slice.dtype, limits.head_blocks)
          .size_bytes;
  return std::min(call * spec.trainer_count, limits.logits_budget_bytes);
}

DenseStore::DenseStore(const ShardSpec& spec, const ShardLimits& limits,
                       kernels::Backend& backend)
    : spec_(spec),
      one_sided_(limits.one_sided),
      blocks_(limits.head_blocks),
      backend_(backend),
      kept_(backend, KeptBytes(spec, limits)) {
  table_.first_row_id = spec.placement.first_row(spec.shard_index);
  table_.row_count =
      spec.placement.end_row(spec.shard_index) - table_.first_row_id;
  table_.dim = spec.dim;
  table_.dtype = spec.row_dtype;
  table_.main_grad_dtype = spec.dense->main_grad_dtype;
}

absl::Status DenseStore::Allocate(int64_t size_bytes, void*& data) {
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer buffer,
                            backend_.Allocate(size_bytes));
  data = buffer.data();
  memory_.push_back(std::move(buffer));
  return absl::OkStatus();
}

template <typename T>
absl::Status DenseStore::AllocateRows(int64_t columns, T*& data) {
  void* allocated = nullptr;
  ROWHOUSE_RETURN_IF_ERROR(
      Allocate(table_.row_count * columns * kFloatBytes, allocated));
  data = static_cast<T*>(allocated);
  return absl::OkStatus();
}

absl::Status DenseStore::AllocateArrays() {
  const int64_t elements = table_.row_count * table_.dim;
  ROWHOUSE_ASSIGN_OR_RETURN(
      weights_,
      AllocateWeights(backend_, elements * kernels::SizeOf(table_.dtype),
                      one_sided_));
  table_.weights = weights_.data();
  ROWHOUSE_RETURN_IF_ERROR(Allocate(
      elements * kernels::SizeOf(table_.main_grad_dtype), table_.main_grad));
  ROWHOUSE_RETURN_IF_ERROR(AllocateRows(table_.dim, table_.first_moment));
  ROWHOUSE_RETURN_IF_ERROR(AllocateRows(table_.dim, table_.second_moment));
  if (spec_.dense->has_master) {
    ROWHOUSE_RETURN_IF_ERROR(AllocateRows(table_.dim, table_.master));
  }
  if (!spec_.dense->has_bias) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(AllocateRows(1, table_.bias));
  ROWHOUSE_RETURN_IF_ERROR(AllocateRows(1, table_.bias_grad));
  ROWHOUSE_RETURN_IF_ERROR(AllocateRows(1, table_.bias_first_moment));
  return AllocateRows(1, table_.bias_second_moment);
}

std::vector<void*> DenseStore::columns() const {
  std::vector<void*> columns = {table_.weights};
  if (spec_.dense->has_master) columns.push_back(table_.master);
  columns.insert(columns.end(), {table_.first_moment, table_.second_moment});
  if (spec_.dense->has_bias) {
    columns.insert(columns.end(), {table_.bias, table_.bias_first_moment,
                                   table_.bias_second_moment});
  }
  return columns;
}

absl::Status DenseStore::Reset() {
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  kept_.Free();
  folds_.Restart();
  // What others have mapped stays where it is.
  const bool fresh = !one_sided_ || weights_.data() == nullptr;
  if (fresh) {
    { const kernels::Buffer freed(std::move(weights_)); }
    memory_.clear();
    ROWHOUSE_RETURN_IF_ERROR(AllocateArrays());
  }
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.InitializeDense(table_, spec_.initializer, fresh));
  return backend_.Synchronize();
}

absl::Status DenseStore::WriteRows(int64_t first_slot, int64_t row_count,
                                   const void* rows) {
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.WriteDenseRows(table_, first_slot, row_count, rows));
  return backend_.Synchronize();
}

absl::StatusOr<uint64_t> DenseStore::Digest(const Beta2History&) {
  uint64_t sum = 0;
  ROWHOUSE_RETURN_IF_ERROR(backend_.DenseDigest(table_, sum));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  return sum;
}

absl::StatusOr<kernels::GradientStatistics> DenseStore::Statistics(
    const Events& events) {
  ROWHOUSE_RETURN_IF_ERROR(FoldRest(events));
  kernels::GradientStatistics statistics;
  ROWHOUSE_RETURN_IF_ERROR(backend_.DenseStatistics(table_, statistics));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  return statistics;
}

absl::StatusOr<float> DenseStore::Apply(const Events& events,
                                        const EventCommit& commit,
                                        int64_t divisor, const Beta2History&,
                                        kernels::EventReport& report) {
  ROWHOUSE_RETURN_IF_ERROR(FoldRest(events));
  const kernels::AdamWFactors factors =
      kernels::NarrowScalars(*commit.adamw, divisor);
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.ApplyAdamW(table_, factors, spec_.policy, report));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  report.entry_count = events.EntryCount(events.applied() + 1);
  folds_.Restart();
  kept_.DropAll();
  return factors.beta2;
}

absl::Status DenseStore::FoldNext(const Events& events) {
  const StagedPart* const part = folds_.Next(events);
  if (part == nullptr) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(Fold(*part));
  folds_.Advance();
  return backend_.Synchronize();
}

absl::Status DenseStore::FoldRest(const Events& events) {
  while (FoldWaits(events)) ROWHOUSE_RETURN_IF_ERROR(FoldNext(events));
  return absl::OkStatus();
}

absl::Status DenseStore::Fold(const StagedPart& part) {
  const kernels::MainGrad main_grad = kernels::MainGradOf(table_);
  if (part.head() == nullptr) {
    if (part.row_count() == 0) return absl::OkStatus();
    const kernels::GradientPart view = part.view();
    return backend_.AccumulateEmbeddingGradient(
        main_grad, {.slots = {view.slots, static_cast<size_t>(view.row_count)},
                    .rows = view.rows,
                    .dtype = spec_.gradient_dtype,
                    .row_stride = table_.dim});
  }
  return FoldHead(*part.head());
}

absl::Status DenseStore::FoldHead(const HeadOperands& head) {
  ROWHOUSE_RETURN_IF_ERROR(backend_.HeadWeightGradient(
      Slice(head), head.inputs(), head.merged(), blocks_, kept_.Find(&head),
      kernels::MainGradOf(table_), table_.bias_grad));
  kept_.Drop(&head);
  return absl::OkStatus();
}

absl::Status DenseStore::DropFolds() {
  const bool folded = folds_.folded();
  folds_.Restart();
  kept_.DropAll();
  if (!folded) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(backend_.ClearMainGrad(table_));
  return backend_.Synchronize();
}

// As a call's loss has it.
kernels::HeadSlice DenseStore::Slice(const HeadOperands& head) const {
  const ClassWeights* const weights = head.class_weights();
  return {table_.weights, table_.dtype,
          table_.bias,    table_.row_count,
          table_.dim,     weights == nullptr ? nullptr : weights->values(),
          head.softcap()};
}

// Room for what a call to be staged keeps, for a part of it, or none.
std::span<std::byte> DenseStore::Keep(
    const std::shared_ptr<const HeadOperands>& operands) {
  const kernels::HeadKept layout =
      kernels::HeadKept::Of(Slice(*operands), operands->token_count(),
                            operands->inputs().hidden_dtype, blocks_);
  return kept_.Keep(operands, layout.least_bytes, layout.size_bytes);
}

absl::Status DenseStore::ComputeHeadStatistics(HeadLanding& head) {
  const std::shared_ptr<const HeadOperands> operands = head.operands();
  const std::span<std::byte> kept =
      head.staging() ? Keep(operands) : std::span<std::byte>();
  ROWHOUSE_RETURN_IF_ERROR(backend_.KeepHeadTokenStatistics(
      Slice(*operands), operands->inputs(), blocks_, kept, head.statistics()));
  return backend_.Synchronize();
}

absl::Status DenseStore::ComputeHiddenGradient(HeadLanding& head) {
  const std::shared_ptr<const HeadOperands> operands = head.operands();
  ROWHOUSE_ASSIGN_OR_RETURN(float* const gradient, head.hidden_gradient());
  const std::span<std::byte> kept = kept_.Find(operands.get());
  if (!kept.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(backend_.KeptHeadHiddenGradient(
        Slice(*operands), operands->inputs(), operands->merged(), blocks_, kept,
        gradient));
  } else {
    ROWHOUSE_RETURN_IF_ERROR(backend_.HeadHiddenGradient(
        Slice(*operands), operands->inputs(), operands->merged(), blocks_,
        head.staging() ? Keep(operands) : std::span<std::byte>(), gradient));
  }
  return backend_.Synchronize();
}

}  // namespace rowhouse::server
