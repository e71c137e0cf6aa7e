#include "client/internal/head_call.h"

#include "kernels/linear_cross_entropy.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {

HeadCall::HeadCall(ClusterCore& cluster, int32_t slice_count,
                   const HeadHeader& header, const HeadTokens& tokens)
    : cluster_(cluster),
      header_(header),
      tokens_(tokens),
      max_logits_(header.token_count),
      exp_sums_(header.token_count),
      losses_(header.token_count) {
  for (int32_t slice = 0; slice < slice_count; ++slice) {
    slices_.push_back(
        std::make_unique<HeadSliceCall>(cluster, slice, header, tokens));
  }
}

absl::Status HeadCall::ComputeLosses(const CallContext& context) {
  // Without tokens a server asks for nothing between the phases, and would
  // stage the part at once: such a call is opened by `SumGradients`.
  const bool deferred =
      header_.token_count == 0 && header_.purpose != HeadPurpose::kEvaluation;
  if (deferred) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(cluster_.pool().FanOut(
      static_cast<int32_t>(slices_.size()), [&](int32_t slice) {
        return slices_[slice]->ComputeStatistics(context);
      }));
  MergeStatistics();
  return absl::OkStatus();
}

void HeadCall::MergeStatistics() {
  std::vector<kernels::HeadStatistics> slices;
  for (const auto& slice : slices_) slices.push_back(slice->statistics());
  std::vector<float> target_logits(header_.token_count);
  kernels::MergeHeadStatistics(
      slices, header_.token_count,
      {max_logits_.data(), exp_sums_.data(), target_logits.data()});
  loss_sum_ = 0;
  valid_token_count_ = 0;
  for (int64_t t = 0; t < header_.token_count; ++t) {
    if (!is_valid(t)) continue;
    losses_[t] =
        kernels::HeadLoss(max_logits_[t], exp_sums_[t], target_logits[t]);
    loss_sum_ += losses_[t];
    ++valid_token_count_;
  }
}

absl::Status HeadCall::SumGradients(std::span<const float> upstream,
                                    HeadGradientSum& sum,
                                    const CallContext& context) {
  const HeadMerged merged = {max_logits_, exp_sums_, upstream};
  return cluster_.pool().FanOut(
      static_cast<int32_t>(slices_.size()), [&](int32_t slice) {
        absl::Status status = slices_[slice]->AddGradient(merged, sum, context);
        if (!status.ok()) sum.Fail(slice);
        return status;
      });
}

}  // namespace rowhouse::client::internal
