#ifndef ROWHOUSE_KERNELS_HEAD_LOSS_H_
#define ROWHOUSE_KERNELS_HEAD_LOSS_H_

#include <cmath>
#include <cstdint>

#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels {

/// What a head's loss has beside plain cross entropy; linear_cross_entropy.h
/// tells the whole formula. fp64 here, from the slices' fp32 statistics.
struct HeadLossTerms {
  double label_smoothing = 0;   ///< s, in [0, 1).
  double z_loss = 0;            ///< l, at least 0.
  double class_weight_sum = 0;  ///< w_all.
  int64_t class_count = 1;      ///< V, at least 1.

  /// s / V.
  double smoothing_share() const {
    return label_smoothing / static_cast<double>(class_count);
  }
};

/// Merged statistics of a token that is not ignored, and w[y].
struct HeadToken {
  float max_logit = 0;
  float exp_sum = 0;
  float target_logit = 0;
  float weighted_logit_sum = 0;  ///< 0 where nothing is smoothed.
  double target_weight = 1;

  double log_sum_exp() const {
    return max_logit + std::log(static_cast<double>(exp_sum));
  }
};

/// The loss of a token in its two terms, as a mean divides them.
struct HeadTokenLoss {
  double cross_entropy = 0;
  double z_loss = 0;
};

/// Plain cross entropy is `HeadLoss`, exactly.
inline HeadTokenLoss LossOf(const HeadLossTerms& terms,
                            const HeadToken& token) {
  HeadTokenLoss loss;
  loss.cross_entropy =
      (1 - terms.label_smoothing) * token.target_weight *
      HeadLoss(token.max_logit, token.exp_sum, token.target_logit);
  if (terms.label_smoothing > 0) {
    loss.cross_entropy += terms.smoothing_share() *
                          (terms.class_weight_sum * token.log_sum_exp() -
                           static_cast<double>(token.weighted_logit_sum));
  }
  if (terms.z_loss > 0) {
    loss.z_loss = terms.z_loss * token.log_sum_exp() * token.log_sum_exp();
  }
  return loss;
}

/// p, t and u of one token.
struct HeadCoefficients {
  float probability = 0;
  float target = 0;
  float smoothing = 0;
};

/// The gradient of `upstream * cross_entropy + z_upstream * z_loss`; each
/// coefficient is narrowed once. For plain cross entropy p = t =
/// fp32(upstream).
inline HeadCoefficients CoefficientsOf(const HeadLossTerms& terms,
                                       const HeadToken& token, double upstream,
                                       double z_upstream) {
  const double target =
      upstream * ((1 - terms.label_smoothing) * token.target_weight);
  double probability = target;
  if (terms.label_smoothing > 0) {
    probability += upstream * terms.smoothing_share() * terms.class_weight_sum;
  }
  if (terms.z_loss > 0) {
    probability += z_upstream * 2 * terms.z_loss * token.log_sum_exp();
  }
  return {static_cast<float>(probability), static_cast<float>(target),
          static_cast<float>(upstream * terms.smoothing_share())};
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_HEAD_LOSS_H_
