#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_CALL_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_CALL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/internal/cluster_core.h"
#include "client/internal/head_gradient_sum.h"
#include "client/internal/head_slice_call.h"
#include "client/internal/head_statistics_arrays.h"
#include "client/internal/head_stream.h"
#include "kernels/head_loss.h"
#include "proto/wire/placement.h"

namespace rowhouse::client::internal {

/// Upstream gradients of a token's two losses.
struct HeadUpstream {
  double cross_entropy = 0;
  double z_loss = 0;
};

/// Of the logit gradient, by token (kernels/linear_cross_entropy.h): 0 where
/// ignored; the last two with `HeadHeader::coefficients` only.
struct HeadCoefficients {
  std::vector<float> probability;
  std::vector<float> target = {};
  std::vector<float> smoothing = {};
};

/// Over the tokens of a call that are not ignored, fp64 in token order.
struct HeadSums {
  double cross_entropy = 0;
  double z_loss = 0;
  double target_weight = 0;  ///< Class weights of the targets.
  int64_t valid_token_count = 0;
  int64_t correct_token_count = 0;  ///< Predicted; 0 if not asked for.
};

/// A head call on all slices at once: merges their statistics to losses and
/// sums their hidden gradients.
///
/// Thread-compatible.
class HeadCall {
 public:
  /// `cluster`, and what the header and the tokens view, must outlive it. The
  /// class weights of `tokens` are those of the whole table, or none.
  HeadCall(ClusterCore& cluster, const wire::Placement& placement,
           const HeadHeader& header, const HeadTokens& tokens,
           const kernels::HeadLossTerms& terms);

  /// Computes the losses. Errors are those of the lowest slice.
  absl::Status ComputeLosses(const CallContext& context);

  /// Of the gradient whose upstream `upstream` tells of each token that is not
  /// ignored. After `ComputeLosses`.
  HeadCoefficients CoefficientsOf(
      absl::FunctionRef<HeadUpstream(int64_t)> upstream) const;

  /// Sums the hidden gradients; may be repeated. After `ComputeLosses`.
  absl::Status SumGradients(const HeadCoefficients& coefficients,
                            HeadGradientSum& sum, const CallContext& context);

  /// The same by statistics of the caller's own, which the slices may refuse.
  absl::Status SumGradients(const HeadMerged& merged, HeadGradientSum& sum,
                            const CallContext& context);

  bool is_valid(int64_t token) const {
    return tokens_.targets[token] != header_.ignore_index;
  }
  const HeadHeader& header() const { return header_; }
  /// Merged over all slices, by token; after `ComputeLosses`.
  std::span<const float> max_logits() const { return merged_.max_logits(); }
  std::span<const float> exp_sums() const { return merged_.exp_sums(); }
  std::span<const int64_t> predicted() const { return merged_.predicted(); }
  std::span<const float> losses() const { return losses_; }
  const HeadSums& sums() const { return sums_; }

 private:
  double TargetWeight(int64_t token) const;
  void MergeStatistics();

  ClusterCore& cluster_;
  const HeadHeader header_;
  const HeadTokens tokens_;
  const kernels::HeadLossTerms terms_;
  std::vector<std::unique_ptr<HeadSliceCall>> slices_;
  HeadStatisticsArrays merged_;
  std::vector<float> losses_;
  HeadSums sums_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_CALL_H_
