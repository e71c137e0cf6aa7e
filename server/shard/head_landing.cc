#include "server/shard/head_landing.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/hash.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

int64_t SizeOfSpan(std::span<const float> values) {
  return static_cast<int64_t>(values.size());
}

// The statistics of a call in one piece of memory: predicted rows if asked for,
// then arrays of floats.
struct StatisticsLayout {
  int64_t token_count;
  bool weighted;
  bool predicted;

  static StatisticsLayout Of(const HeadHeader& header) {
    return {header.token_count, header.weighted_logit_sums, header.predicted};
  }
  int64_t predicted_bytes() const {
    return predicted ? token_count * static_cast<int64_t>(sizeof(int64_t)) : 0;
  }
  int64_t size_bytes() const {
    return predicted_bytes() + (weighted ? 4 : 3) * token_count * kFloatBytes;
  }
  kernels::HeadStatistics In(const kernels::Buffer& memory) const {
    if (memory.data() == nullptr) return {};
    auto* const floats =
        reinterpret_cast<float*>(memory.as<std::byte>() + predicted_bytes());
    return {floats, floats + token_count, floats + 2 * token_count,
            weighted ? floats + 3 * token_count : nullptr,
            predicted ? memory.as<int64_t>() : nullptr};
  }
};

// Of `items`, named by their field: `first_token` or `first_row`.
absl::Status CheckNext(const char* what, const char* field, int64_t first,
                       int64_t before, int64_t count, int64_t announced) {
  if (first != before) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadOffset,
        absl::StrCat(field, " of the ", what, " is ", first, "; ", before,
                     " came before, so it must be ", before),
        {{field, absl::StrCat(first)}, {"wanted", absl::StrCat(before)}});
  }
  if (count <= announced - before) return absl::OkStatus();
  return BadCountError(what, before + count, announced);
}

absl::Status BadClassWeightError(int64_t row_id, float found) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadScalar,
      absl::StrCat("the class weight of row ", row_id, " is ", found,
                   "; it must be finite and at least 0"),
      {{"row_id", absl::StrCat(row_id)}, {"found", absl::StrCat(found)}});
}

absl::Status NotFiniteError(std::string_view what, int64_t token,
                            std::string_view table) {
  return wire::Error(absl::StatusCode::kInvalidArgument,
                     wire::reasons::kNotFinite,
                     absl::StrCat(absl::string_view(what.data(), what.size()),
                                  " of token ", token, " is not finite; ",
                                  absl::string_view(table.data(), table.size()),
                                  " takes finite values only"),
                     {{"token", absl::StrCat(token)}});
}

absl::Status BadMergedError(std::string_view what, int64_t token, float found,
                            std::string_view wanted) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kNotFinite,
      absl::StrCat(absl::string_view(what.data(), what.size()), " of token ",
                   token, " is ", found, "; it must be ",
                   absl::string_view(wanted.data(), wanted.size())),
      {{"token", absl::StrCat(token)}, {"found", absl::StrCat(found)}});
}

absl::Status BadStatisticsError(int64_t token, float merged, float own) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadStatistics,
      absl::StrCat("max_logits of token ", token, " is ", merged,
                   "; it must be at least this slice's own, ", own),
      {{"token", absl::StrCat(token)}});
}

// Places of a part's content: targets at [0, tokens), then each array of merged
// values, then what the whole call has.
constexpr int64_t kMostMergedArrays = 5;

kernels::ContentSum MergedContent(int64_t token_count, int64_t array,
                                  int64_t token, float value) {
  return kernels::IdContent((1 + array) * token_count + token,
                            std::bit_cast<uint32_t>(value));
}

}  // namespace

void HeadMemory::Revoke(const absl::Status& reason) {
  MutexLock lock(mutex_);
  if (fault_.ok()) fault_ = DeepCopy(reason);
  operands_ = nullptr;
  class_weights_ = nullptr;
  { const kernels::Buffer freed(std::move(statistics_)); }
  { const kernels::Buffer freed(std::move(gradient_)); }
  if (on_revoked_ != nullptr) std::exchange(on_revoked_, nullptr)(fault_);
}

void HeadMemory::set_on_revoked(OnRevoked on_revoked) {
  absl::Status fault;
  {
    MutexLock lock(mutex_);
    if (fault_.ok()) {
      on_revoked_ = std::move(on_revoked);
      return;
    }
    on_revoked_ = nullptr;
    fault = DeepCopy(fault_);
  }
  if (on_revoked != nullptr) on_revoked(std::move(fault));
}

HeadLanding::HeadLanding(const Shared& shard, const HeadHeader& header)
    : shard_(shard), header_(header) {}

absl::StatusOr<std::unique_ptr<HeadLanding>> HeadLanding::Create(
    const Shared& shard, const HeadHeader& header) {
  std::unique_ptr<HeadLanding> landing(new HeadLanding(shard, header));
  ROWHOUSE_RETURN_IF_ERROR(landing->Allocate());
  return landing;
}

absl::Status HeadLanding::Allocate() {
  MutexLock lock(memory_->mutex_);
  ROWHOUSE_ASSIGN_OR_RETURN(
      HeadOperands operands,
      HeadOperands::Allocate(shard_.backend, header_, shard_.spec.dim));
  memory_->operands_ = std::make_shared<HeadOperands>(std::move(operands));
  if (header_.token_count == 0) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(
      memory_->statistics_,
      shard_.backend.Allocate(StatisticsLayout::Of(header_).size_bytes()));
  return absl::OkStatus();
}

HeadLanding::~HeadLanding() {
  memory_->set_on_revoked(nullptr);
  if (abandon_ != nullptr) abandon_();
}

bool HeadLanding::rejects() const {
  return shard_.spec.policy == kernels::NonFinitePolicy::kReject;
}

PartName HeadLanding::name() const {
  return {header_.event, header_.trainer->trainer_rank, header_.part};
}

PartContent HeadLanding::content() const {
  PartContent content;
  content.row_count = header_.token_count;
  content.ids = ids_;
  int64_t next = (1 + kMostMergedArrays) * header_.token_count;
  for (const int64_t value :
       {static_cast<int64_t>(header_.hidden_dtype), header_.ignore_index,
        int64_t{std::bit_cast<uint32_t>(header_.softcap)},
        int64_t{header_.coefficients}, int64_t{header_.class_weights},
        static_cast<int64_t>(class_weight_content_.low),
        static_cast<int64_t>(class_weight_content_.high)}) {
    *content.ids += kernels::IdContent(next++, value);
  }
  content.rows = rows_;
  return content;
}

absl::Status HeadLanding::AppendClassWeights(int64_t first_row,
                                             std::span<const float> values) {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  absl::Status landed = LandClassWeights(first_row, values);
  if (!landed.ok()) memory_->fault_ = DeepCopy(landed);
  return landed;
}

absl::Status HeadLanding::LandClassWeights(int64_t first_row,
                                           std::span<const float> values) {
  const int64_t row_count = shard_.range.row_count();
  ROWHOUSE_RETURN_IF_ERROR(CheckNext("class weights", "first_row", first_row,
                                     class_weight_count_, SizeOfSpan(values),
                                     row_count));
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && values[i] >= 0) continue;
    return BadClassWeightError(
        shard_.range.first_row_id() + first_row + static_cast<int64_t>(i),
        values[i]);
  }
  class_weights_.insert(class_weights_.end(), values.begin(), values.end());
  class_weight_count_ += SizeOfSpan(values);
  if (class_weight_count_ < row_count || values.empty()) {
    return absl::OkStatus();
  }
  ROWHOUSE_ASSIGN_OR_RETURN(memory_->class_weights_,
                            shard_.class_weights.Hold(class_weights_));
  class_weights_ = {};
  class_weight_content_ = memory_->class_weights_->set->content;
  memory_->operands_->set_class_weights(memory_->class_weights_->set);
  return absl::OkStatus();
}

absl::Status HeadLanding::AppendInputs(int64_t first_token,
                                       std::span<const int64_t> targets,
                                       std::string_view hidden) {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  absl::Status landed = LandInputs(first_token, targets, hidden);
  if (!landed.ok()) memory_->fault_ = DeepCopy(landed);
  return landed;
}

absl::Status HeadLanding::LandInputs(int64_t first_token,
                                     std::span<const int64_t> targets,
                                     std::string_view hidden) {
  const auto count = static_cast<int64_t>(targets.size());
  const int64_t row_bytes =
      shard_.spec.dim * kernels::SizeOf(header_.hidden_dtype);
  ROWHOUSE_RETURN_IF_ERROR(CheckNext("inputs", "first_token", first_token,
                                     input_count_, count, header_.token_count));
  const auto found_bytes = static_cast<int64_t>(hidden.size());
  if (found_bytes != count * row_bytes) {
    return BadShapeError("bytes of hidden states", found_bytes,
                         count * row_bytes);
  }
  if (count == 0) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(LandTargets(targets));
  kernels::RowScan scan;
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.LandRows(
      hidden.data(), memory_->operands_->hidden() + input_count_ * row_bytes,
      count, shard_.spec.dim, header_.hidden_dtype, input_count_, rows_, scan));
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Synchronize());
  if (scan.non_finite_row != kernels::RowScan::kNone && rejects()) {
    return NotFiniteError(
        absl::StrCat("column ", scan.non_finite_column, " of the hidden state"),
        input_count_ + scan.non_finite_row, shard_.spec.table);
  }
  input_count_ += count;
  return absl::OkStatus();
}

// Targets of other slices, and ignored ones, have slot -1 here.
absl::Status HeadLanding::LandTargets(std::span<const int64_t> targets) {
  const int64_t vocabulary = shard_.spec.placement.row_count();
  const int64_t first_row_id = shard_.range.first_row_id();
  slots_.assign(targets.size(), -1);
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t target = targets[i];
    const int64_t token = input_count_ + static_cast<int64_t>(i);
    ids_ += kernels::IdContent(token, target);
    ignored_.push_back(target == header_.ignore_index);
    if (ignored_.back()) continue;
    if (target < 0 || target >= vocabulary) {
      return wire::Error(
          absl::StatusCode::kOutOfRange, wire::reasons::kRowOutOfTable,
          absl::StrCat("the target of token ", token, " is ", target,
                       "; it must be in [0, ", vocabulary,
                       ") or the ignore index, ", header_.ignore_index),
          {{"token", absl::StrCat(token)}, {"target", absl::StrCat(target)}});
    }
    const int64_t slot = target - first_row_id;
    if (slot >= 0 && slot < shard_.range.row_count()) slots_[i] = slot;
  }
  return shard_.backend.Copy(
      slots_.data(), memory_->operands_->targets() + input_count_,
      static_cast<int64_t>(slots_.size() * sizeof(int64_t)));
}

absl::Status HeadLanding::ReadStatistics(int64_t first_token,
                                         const HeadStatisticsOut& out) {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  const kernels::HeadStatistics all =
      StatisticsLayout::Of(header_).In(memory_->statistics_);
  const auto read = [&](const auto* from, auto to) {
    if (to.empty()) return absl::OkStatus();
    return shard_.backend.Copy(from + first_token, to.data(),
                               static_cast<int64_t>(to.size_bytes()));
  };
  ROWHOUSE_RETURN_IF_ERROR(read(all.max_logits, out.max_logits));
  ROWHOUSE_RETURN_IF_ERROR(read(all.exp_sums, out.exp_sums));
  ROWHOUSE_RETURN_IF_ERROR(read(all.target_logits, out.target_logits));
  ROWHOUSE_RETURN_IF_ERROR(
      read(all.weighted_logit_sums, out.weighted_logit_sums));
  ROWHOUSE_RETURN_IF_ERROR(read(all.predicted, out.predicted));
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Synchronize());
  for (int64_t& row : out.predicted) {
    if (row >= 0) row += shard_.range.first_row_id();
  }
  return absl::OkStatus();
}

absl::Status HeadLanding::AppendMerged(const HeadMergedTokens& tokens) {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  absl::Status landed = LandMerged(tokens);
  if (!landed.ok()) memory_->fault_ = DeepCopy(landed);
  return landed;
}

absl::Status HeadLanding::CheckMergedShape(
    const HeadMergedTokens& tokens) const {
  const int64_t count = SizeOfSpan(tokens.max_logits);
  if (SizeOfSpan(tokens.exp_sums) != count) {
    return BadShapeError("exp_sums", SizeOfSpan(tokens.exp_sums), count);
  }
  if (SizeOfSpan(tokens.upstream) != count) {
    return BadShapeError("upstream_gradients", SizeOfSpan(tokens.upstream),
                         count);
  }
  const int64_t wanted = header_.coefficients ? count : 0;
  if (SizeOfSpan(tokens.target) != wanted) {
    return BadShapeError("target_coefficients", SizeOfSpan(tokens.target),
                         wanted);
  }
  if (SizeOfSpan(tokens.smoothing) != wanted) {
    return BadShapeError("smoothing_coefficients", SizeOfSpan(tokens.smoothing),
                         wanted);
  }
  return CheckNext("merged statistics", "first_token", tokens.first_token,
                   merged_count_, count, header_.token_count);
}

// Ignored tokens are left out of all gradients, whatever their coefficients.
absl::Status HeadLanding::LandMerged(const HeadMergedTokens& tokens) {
  ROWHOUSE_RETURN_IF_ERROR(CheckMergedShape(tokens));
  if (tokens.max_logits.empty()) return absl::OkStatus();
  const std::vector<float> upstream = WithoutIgnored(tokens.upstream);
  const std::vector<float> target = WithoutIgnored(tokens.target);
  const std::vector<float> smoothing = WithoutIgnored(tokens.smoothing);
  const HeadMergedTokens landing = {
      tokens.first_token, tokens.max_logits, tokens.exp_sums, upstream, target,
      smoothing};
  if (rejects()) ROWHOUSE_RETURN_IF_ERROR(CheckMergedValues(landing));
  ROWHOUSE_RETURN_IF_ERROR(LandMergedArrays(landing));
  merged_count_ += SizeOfSpan(tokens.max_logits);
  return absl::OkStatus();
}

absl::Status HeadLanding::LandMergedArrays(const HeadMergedTokens& tokens) {
  const HeadOperands& operands = *memory_->operands_;
  const struct {
    std::span<const float> from;
    float* to;
  } arrays[kMostMergedArrays] = {{tokens.max_logits, operands.max_logits()},
                                 {tokens.exp_sums, operands.exp_sums()},
                                 {tokens.upstream, operands.upstream()},
                                 {tokens.target, operands.target()},
                                 {tokens.smoothing, operands.smoothing()}};
  for (int64_t array = 0; array < kMostMergedArrays; ++array) {
    const auto& [from, to] = arrays[array];
    if (from.empty()) continue;
    for (size_t i = 0; i < from.size(); ++i) {
      ids_ += MergedContent(header_.token_count, array,
                            merged_count_ + static_cast<int64_t>(i), from[i]);
    }
    ROWHOUSE_RETURN_IF_ERROR(
        shard_.backend.Copy(from.data(), to + merged_count_,
                            static_cast<int64_t>(from.size_bytes())));
  }
  // The copies may still read the caller's arrays.
  return shard_.backend.Synchronize();
}

std::vector<float> HeadLanding::WithoutIgnored(
    std::span<const float> values) const {
  std::vector<float> kept(values.begin(), values.end());
  for (size_t i = 0; i < kept.size(); ++i) {
    if (ignored_[static_cast<size_t>(merged_count_) + i]) kept[i] = 0.0F;
  }
  return kept;
}

// With these every term of the gradients is finite, and so are their sums:
// e^(logit - max) is at most 1. The statistics of a token that is left out say
// nothing.
absl::Status HeadLanding::CheckMergedValues(
    const HeadMergedTokens& tokens) const {
  std::vector<float> own_max(tokens.upstream.size());
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Copy(
      StatisticsLayout::Of(header_).In(memory_->statistics_).max_logits +
          merged_count_,
      own_max.data(), static_cast<int64_t>(own_max.size()) * kFloatBytes));
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Synchronize());
  const ClassWeights* const weights = memory_->operands_->class_weights();
  const float largest_weight = weights == nullptr ? 1.0F : weights->largest;
  for (size_t i = 0; i < own_max.size(); ++i) {
    const int64_t token = merged_count_ + static_cast<int64_t>(i);
    const auto bad = [&](std::string_view what, float found,
                         std::string_view wanted = "finite") {
      return BadMergedError(what, token, found, wanted);
    };
    const float upstream = tokens.upstream[i];
    const float target = header_.coefficients ? tokens.target[i] : 0.0F;
    const float smoothing = header_.coefficients ? tokens.smoothing[i] : 0.0F;
    if (!std::isfinite(upstream)) return bad("upstream_gradients", upstream);
    if (!std::isfinite(target)) return bad("target_coefficients", target);
    if (!std::isfinite(smoothing)) {
      return bad("smoothing_coefficients", smoothing);
    }
    if (upstream == 0 && target == 0 && smoothing == 0) continue;
    const float max = tokens.max_logits[i];
    const float sum = tokens.exp_sums[i];
    if (!std::isfinite(max)) return bad("max_logits", max);
    if (!(sum > 0) || !std::isfinite(sum)) {
      return bad("exp_sums", sum, "finite and above 0");
    }
    const float scale = upstream / sum;
    if (!std::isfinite(scale))
      return bad("upstream_gradients / exp_sums", scale);
    const float size = std::abs(scale) + std::abs(target) +
                       std::abs(smoothing) * largest_weight;
    if (!std::isfinite(size)) return bad("the sum of the coefficients", size);
    if (tokens.max_logits[i] < own_max[i]) {
      return BadStatisticsError(token, tokens.max_logits[i], own_max[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status HeadLanding::ReadHiddenGradient(int64_t first_token,
                                             std::span<float> out) {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  if (out.empty()) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Copy(
      memory_->gradient_.as<float>() + first_token * shard_.spec.dim,
      out.data(), static_cast<int64_t>(out.size_bytes())));
  return shard_.backend.Synchronize();
}

absl::Status HeadLanding::CheckInputs() const {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  if (!class_weights_complete()) {
    return BadCountError("class weights", class_weight_count_,
                         shard_.range.row_count());
  }
  if (inputs_complete()) return absl::OkStatus();
  return BadCountError("tokens of the inputs", input_count_,
                       header_.token_count);
}

absl::Status HeadLanding::CheckMerged() const {
  ROWHOUSE_RETURN_IF_ERROR(CheckInputs());
  if (merged_complete()) return absl::OkStatus();
  return BadCountError("tokens of the merged statistics", merged_count_,
                       header_.token_count);
}

std::shared_ptr<const HeadOperands> HeadLanding::operands() const {
  MutexLock lock(memory_->mutex_);
  return memory_->operands_;
}

std::shared_ptr<const HeldClassWeights> HeadLanding::class_weights() const {
  MutexLock lock(memory_->mutex_);
  return memory_->class_weights_;
}

kernels::HeadStatistics HeadLanding::statistics() const {
  MutexLock lock(memory_->mutex_);
  return StatisticsLayout::Of(header_).In(memory_->statistics_);
}

absl::StatusOr<float*> HeadLanding::hidden_gradient() {
  MutexLock lock(memory_->mutex_);
  if (memory_->gradient_.data() == nullptr && header_.token_count > 0) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        memory_->gradient_,
        shard_.backend.Allocate(header_.token_count * shard_.spec.dim *
                                kFloatBytes));
  }
  return memory_->gradient_.as<float>();
}

}  // namespace rowhouse::server
