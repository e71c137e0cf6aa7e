#include "client/internal/head_call.h"

#include "kernels/linear_cross_entropy.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

HeadTokens TokensOf(const HeadTokens& tokens, const HeadHeader& header,
                    const wire::Placement& placement, int32_t slice) {
  HeadTokens of_slice = tokens;
  of_slice.class_weights = {};
  if (header.class_weights) {
    const int64_t first = placement.first_row(slice);
    of_slice.class_weights =
        tokens.class_weights.subspan(first, placement.end_row(slice) - first);
  }
  return of_slice;
}

}  // namespace

HeadCall::HeadCall(ClusterCore& cluster, const wire::Placement& placement,
                   const HeadHeader& header, const HeadTokens& tokens,
                   const kernels::HeadLossTerms& terms)
    : cluster_(cluster),
      header_(header),
      tokens_(tokens),
      terms_(terms),
      merged_(header),
      losses_(header.token_count) {
  for (int32_t slice = 0; slice < placement.shard_count(); ++slice) {
    slices_.push_back(std::make_unique<HeadSliceCall>(
        cluster, slice, header, TokensOf(tokens, header, placement, slice)));
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

double HeadCall::TargetWeight(int64_t token) const {
  return tokens_.class_weights.empty()
             ? 1.0
             : tokens_.class_weights[tokens_.targets[token]];
}

void HeadCall::MergeStatistics() {
  std::vector<kernels::HeadStatistics> slices;
  for (const auto& slice : slices_) slices.push_back(slice->statistics());
  kernels::MergeHeadStatistics(slices, header_.token_count, merged_.view());
  sums_ = {};
  for (int64_t t = 0; t < header_.token_count; ++t) {
    if (!is_valid(t)) continue;
    const double weight = TargetWeight(t);
    const kernels::HeadTokenLoss loss =
        kernels::LossOf(terms_, merged_.Token(t, weight));
    losses_[t] = static_cast<float>(loss.cross_entropy + loss.z_loss);
    sums_.cross_entropy += loss.cross_entropy;
    sums_.z_loss += loss.z_loss;
    sums_.target_weight += weight;
    ++sums_.valid_token_count;
    if (header_.predicted && predicted()[t] == tokens_.targets[t]) {
      ++sums_.correct_token_count;
    }
  }
}

HeadCoefficients HeadCall::CoefficientsOf(
    absl::FunctionRef<HeadUpstream(int64_t)> upstream) const {
  HeadCoefficients all;
  all.probability.resize(header_.token_count);
  if (header_.coefficients) {
    all.target.resize(header_.token_count);
    all.smoothing.resize(header_.token_count);
  }
  for (int64_t t = 0; t < header_.token_count; ++t) {
    if (!is_valid(t)) continue;
    const HeadUpstream g = upstream(t);
    const kernels::HeadCoefficients of_token = kernels::CoefficientsOf(
        terms_, merged_.Token(t, TargetWeight(t)), g.cross_entropy, g.z_loss);
    all.probability[t] = of_token.probability;
    if (!header_.coefficients) continue;
    all.target[t] = of_token.target;
    all.smoothing[t] = of_token.smoothing;
  }
  return all;
}

absl::Status HeadCall::SumGradients(const HeadCoefficients& coefficients,
                                    HeadGradientSum& sum,
                                    const CallContext& context) {
  return SumGradients(
      HeadMerged{max_logits(), exp_sums(), coefficients.probability,
                 coefficients.target, coefficients.smoothing},
      sum, context);
}

absl::Status HeadCall::SumGradients(const HeadMerged& merged,
                                    HeadGradientSum& sum,
                                    const CallContext& context) {
  return cluster_.pool().FanOut(
      static_cast<int32_t>(slices_.size()), [&](int32_t slice) {
        absl::Status status = slices_[slice]->AddGradient(merged, sum, context);
        if (!status.ok()) sum.Fail(slice);
        return status;
      });
}

}  // namespace rowhouse::client::internal
