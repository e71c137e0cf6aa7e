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

constexpr int64_t kStatisticsArrays = 3;
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

int64_t SizeOfSpan(std::span<const float> values) {
  return static_cast<int64_t>(values.size());
}

absl::Status CheckNext(const char* what, int64_t first_token, int64_t before,
                       int64_t count, int64_t announced) {
  if (first_token != before) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadOffset,
        absl::StrCat("first_token of the ", what, " is ", first_token, "; ",
                     before, " tokens came before, so it must be ", before),
        {{"first_token", absl::StrCat(first_token)},
         {"wanted", absl::StrCat(before)}});
  }
  if (count <= announced - before) return absl::OkStatus();
  return BadCountError(what, before + count, announced);
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

absl::Status BadStatisticsError(int64_t token, float merged, float own) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadStatistics,
      absl::StrCat("max_logits of token ", token, " is ", merged,
                   "; it must be at least this slice's own, ", own),
      {{"token", absl::StrCat(token)}});
}

// Bits of one merged value of a token as a row of the part's content; ids of
// targets are at positions [0, tokens), these follow.
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
  { const kernels::Buffer freed(std::move(statistics_)); }
  { const kernels::Buffer freed(std::move(gradient_)); }
  if (on_revoked_ != nullptr) std::exchange(on_revoked_, nullptr)(fault_);
}

void HeadMemory::set_on_revoked(OnRevoked on_revoked) {
  absl::Status fault;
  {
    MutexLock lock(mutex_);
    fault = DeepCopy(fault_);
    on_revoked_ = fault.ok() ? std::move(on_revoked) : nullptr;
  }
  if (!fault.ok() && on_revoked != nullptr) on_revoked(std::move(fault));
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
      HeadOperands::Allocate(shard_.backend, header_.token_count,
                             shard_.spec.dim, header_.hidden_dtype));
  memory_->operands_ = std::make_shared<HeadOperands>(std::move(operands));
  if (header_.token_count == 0) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(
      memory_->statistics_,
      shard_.backend.Allocate(kStatisticsArrays * header_.token_count *
                              kFloatBytes));
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
  // After the targets and three merged values of each token.
  *content.ids += kernels::IdContent(
      4 * header_.token_count, static_cast<int64_t>(header_.hidden_dtype));
  *content.ids +=
      kernels::IdContent(4 * header_.token_count + 1, header_.ignore_index);
  content.rows = rows_;
  return content;
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
  ROWHOUSE_RETURN_IF_ERROR(CheckNext("inputs", first_token, input_count_, count,
                                     header_.token_count));
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
  const std::span<float> arrays[] = {out.max_logits, out.exp_sums,
                                     out.target_logits};
  for (int64_t array = 0; array < kStatisticsArrays; ++array) {
    const std::span<float> to = arrays[array];
    if (to.empty()) continue;
    ROWHOUSE_RETURN_IF_ERROR(
        shard_.backend.Copy(memory_->statistics_.as<float>() +
                                array * header_.token_count + first_token,
                            to.data(), static_cast<int64_t>(to.size_bytes())));
  }
  return shard_.backend.Synchronize();
}

absl::Status HeadLanding::AppendMerged(const HeadMergedTokens& tokens) {
  MutexLock lock(memory_->mutex_);
  if (!memory_->fault_.ok()) return DeepCopy(memory_->fault_);
  absl::Status landed = LandMerged(tokens);
  if (!landed.ok()) memory_->fault_ = DeepCopy(landed);
  return landed;
}

absl::Status HeadLanding::LandMerged(const HeadMergedTokens& tokens) {
  const int64_t count = SizeOfSpan(tokens.max_logits);
  for (const std::span<const float> other :
       {tokens.exp_sums, tokens.upstream}) {
    if (SizeOfSpan(other) == count) continue;
    return BadShapeError("merged values a token", SizeOfSpan(other), count);
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckNext("merged statistics", tokens.first_token,
                                     merged_count_, count,
                                     header_.token_count));
  if (count == 0) return absl::OkStatus();
  const std::vector<float> upstream = UpstreamOf(tokens);
  if (rejects()) {
    ROWHOUSE_RETURN_IF_ERROR(CheckMergedValues(tokens, upstream));
  }
  const HeadOperands& operands = *memory_->operands_;
  float* const to[] = {operands.max_logits(), operands.exp_sums(),
                       operands.upstream()};
  const std::span<const float> from[] = {tokens.max_logits, tokens.exp_sums,
                                         upstream};
  for (int64_t array = 0; array < 3; ++array) {
    for (int64_t i = 0; i < count; ++i) {
      ids_ += MergedContent(header_.token_count, array, merged_count_ + i,
                            from[array][i]);
    }
    ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Copy(
        from[array].data(), to[array] + merged_count_, count * kFloatBytes));
  }
  // The copies may still read the caller's arrays.
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Synchronize());
  merged_count_ += count;
  return absl::OkStatus();
}

// Ignored tokens are left out of all gradients, whatever their upstream.
std::vector<float> HeadLanding::UpstreamOf(
    const HeadMergedTokens& tokens) const {
  std::vector<float> upstream(tokens.upstream.begin(), tokens.upstream.end());
  for (size_t i = 0; i < upstream.size(); ++i) {
    if (ignored_[static_cast<size_t>(merged_count_) + i]) upstream[i] = 0.0F;
  }
  return upstream;
}

// With these every term of the gradients is finite: e^(logit - max) is at most
// 1. The statistics of a token that is left out say nothing.
absl::Status HeadLanding::CheckMergedValues(
    const HeadMergedTokens& tokens, std::span<const float> upstream) const {
  std::vector<float> own_max(upstream.size());
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Copy(
      memory_->statistics_.as<float>() + merged_count_, own_max.data(),
      static_cast<int64_t>(own_max.size()) * kFloatBytes));
  ROWHOUSE_RETURN_IF_ERROR(shard_.backend.Synchronize());
  for (size_t i = 0; i < upstream.size(); ++i) {
    const int64_t token = merged_count_ + static_cast<int64_t>(i);
    if (!std::isfinite(upstream[i])) {
      return NotFiniteError("upstream_gradients", token, shard_.spec.table);
    }
    if (upstream[i] == 0) continue;
    if (!std::isfinite(tokens.max_logits[i])) {
      return NotFiniteError("max_logits", token, shard_.spec.table);
    }
    if (!(tokens.exp_sums[i] > 0) || !std::isfinite(tokens.exp_sums[i])) {
      return NotFiniteError("exp_sums", token, shard_.spec.table);
    }
    if (!std::isfinite(upstream[i] / tokens.exp_sums[i])) {
      return NotFiniteError("upstream_gradients / exp_sums", token,
                            shard_.spec.table);
    }
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

kernels::HeadStatistics HeadLanding::statistics() const {
  MutexLock lock(memory_->mutex_);
  float* const first = memory_->statistics_.as<float>();
  return {first, first + header_.token_count, first + 2 * header_.token_count};
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
