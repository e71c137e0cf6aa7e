#ifndef ROWHOUSE_TESTS_REFERENCE_LINEAR_CROSS_ENTROPY_H_
#define ROWHOUSE_TESTS_REFERENCE_LINEAR_CROSS_ENTROPY_H_

#include <cstdint>
#include <vector>

namespace rowhouse::reference {

/// A linear cross entropy over the whole vocabulary.
struct CrossEntropyInputs {
  int64_t token_count = 0;
  int64_t row_count = 0;
  int64_t dim = 0;
  std::vector<float> hidden;
  std::vector<float> weights;
  std::vector<float> bias;       // Empty: none.
  std::vector<int64_t> targets;  // Negative: ignored.
  std::vector<float> upstream;
  std::vector<float> class_weights = {};  // Empty: 1 each.
  double softcap = 0;                     // 0: none.
  double label_smoothing = 0;
  double z_loss = 0;
  std::vector<float> z_upstream = {};  // Of the z-loss; empty: `upstream`.

  double class_weight(int64_t row) const {
    return class_weights.empty() ? 1.0 : class_weights[row];
  }
};

/// Results in fp64, and beside each gradient two sums that bound the error of
/// arithmetic with fewer bits: of the absolute values of its terms, and of the
/// factors that the logit gradient meets.
struct CrossEntropyResult {
  std::vector<double> loss;
  std::vector<double> z_loss;      // The z-loss's share of it.
  std::vector<double> loss_terms;  // Per token: what errors of logits meet.
  std::vector<double> logits;      // [token_count, row_count].
  std::vector<double> largest_logit_terms;  // Per token: max of sum |h||w|+|b|.
  std::vector<double> hidden_gradient;
  std::vector<double> hidden_gradient_terms;
  std::vector<double> hidden_gradient_factors;
  std::vector<double> weight_gradient;
  std::vector<double> weight_gradient_terms;
  std::vector<double> weight_gradient_factors;
  std::vector<double> bias_gradient;
  std::vector<double> bias_gradient_terms;
};

/// The oracle of the head's tests, straight from the definition.
CrossEntropyResult LinearCrossEntropy(const CrossEntropyInputs& inputs);

}  // namespace rowhouse::reference

#endif  // ROWHOUSE_TESTS_REFERENCE_LINEAR_CROSS_ENTROPY_H_
