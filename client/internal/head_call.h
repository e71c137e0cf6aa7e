#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_CALL_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_CALL_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/internal/cluster_core.h"
#include "client/internal/head_gradient_sum.h"
#include "client/internal/head_slice_call.h"
#include "client/internal/head_stream.h"

namespace rowhouse::client::internal {

/// A head call on all slices at once: merges their statistics to losses and
/// sums their hidden gradients.
///
/// Thread-compatible.
class HeadCall {
 public:
  /// `cluster`, and what the header and the tokens view, must outlive it.
  HeadCall(ClusterCore& cluster, int32_t slice_count, const HeadHeader& header,
           const HeadTokens& tokens);

  /// Computes the losses. Errors are those of the lowest slice.
  absl::Status ComputeLosses(const CallContext& context);

  /// Sums the hidden gradients; may be repeated. After `ComputeLosses`.
  /// `upstream` is [token_count], 0 where ignored.
  absl::Status SumGradients(std::span<const float> upstream,
                            HeadGradientSum& sum, const CallContext& context);

  bool is_valid(int64_t token) const {
    return tokens_.targets[token] != header_.ignore_index;
  }
  const HeadHeader& header() const { return header_; }
  /// Merged over all slices, by token; after `ComputeLosses`.
  std::span<const float> max_logits() const { return max_logits_; }
  std::span<const float> exp_sums() const { return exp_sums_; }
  std::span<const float> losses() const { return losses_; }
  double loss_sum() const { return loss_sum_; }  ///< fp64, in token order.
  int64_t valid_token_count() const { return valid_token_count_; }

 private:
  void MergeStatistics();

  ClusterCore& cluster_;
  const HeadHeader header_;
  const HeadTokens tokens_;
  std::vector<std::unique_ptr<HeadSliceCall>> slices_;
  std::vector<float> max_logits_;  // Merged, by token; so are the sums.
  std::vector<float> exp_sums_;
  std::vector<float> losses_;
  double loss_sum_ = 0;
  int64_t valid_token_count_ = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_CALL_H_
