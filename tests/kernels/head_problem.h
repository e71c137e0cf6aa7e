#ifndef ROWHOUSE_TESTS_KERNELS_HEAD_PROBLEM_H_
#define ROWHOUSE_TESTS_KERNELS_HEAD_PROBLEM_H_

/// A whole linear cross entropy on the host, and its way through the slices of
/// a backend, as the client library goes it.

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/head_loss.h"

namespace rowhouse::kernels {

struct HeadProblem {
  int64_t token_count = 0;
  int64_t row_count = 0;
  int64_t dim = 0;
  DType hidden_dtype = DType::kFp32;
  DType weight_dtype = DType::kFp32;
  DType main_grad_dtype = DType::kFp32;
  std::vector<float> hidden;     // [token_count, dim], representable.
  std::vector<float> weights;    // [row_count, dim], representable.
  std::vector<float> bias;       // [row_count], or empty: none.
  std::vector<int64_t> targets;  // Rows of the vocabulary, or -1: ignored.
  std::vector<float> upstream;   // 0 where ignored.
  std::vector<int64_t> bounds;   // Slice s: rows [bounds[s], bounds[s + 1]).
  HeadBlocks blocks;
  bool keep = false;  // Whether the logit gradient is kept for the weights'.
  bool keep_logits = false;  // The same, from the statistics on.
  double kept_share = 1;     // Of that, how much finds room.
  bool at_once = false;      // Whether both gradients are formed in one call.
  std::vector<float> main_grad;      // Before; empty: zeros.
  std::vector<float> bias_grad;      // Before; empty: zeros.
  std::vector<float> class_weights;  // [row_count], or empty: none.
  float softcap = 0;                 // 0: none.
  double label_smoothing = 0;
  double z_loss = 0;
  std::vector<float> z_upstream;  // Of the z-loss; empty: `upstream`.
  bool predict = false;           // Whether to ask for predicted rows.

  HeadLossTerms terms() const;
};

struct HeadResult {
  std::vector<float> max_logits;       // Merged.
  std::vector<float> exp_sums;         // Merged.
  std::vector<float> loss;             // 0 where ignored.
  std::vector<float> hidden_gradient;  // fp32, slices summed in order.
  std::vector<float> main_grad;        // After, all slices.
  std::vector<float> bias_grad;        // After; empty without a bias.
  std::vector<int64_t> predicted;      // Empty if not asked for.
};

HeadResult RunHead(Backend& backend, const HeadProblem& problem);

/// Expects the same bits everywhere.
void ExpectSameBits(const HeadResult& got, const HeadResult& want);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_HEAD_PROBLEM_H_
