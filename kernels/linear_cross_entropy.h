#ifndef ROWHOUSE_KERNELS_LINEAR_CROSS_ENTROPY_H_
#define ROWHOUSE_KERNELS_LINEAR_CROSS_ENTROPY_H_

#include <cstdint>

#include "kernels/dtype.h"

namespace rowhouse::kernels {

/// A vocabulary slice: the rows of one shard of a dense table.
struct HeadSlice {
  const void* weights = nullptr;  ///< [row_count, dim], `dtype`.
  DType dtype = DType::kBf16;
  const float* bias = nullptr;  ///< [row_count], or null.
  int64_t row_count = 0;
  int64_t dim = 0;
};

/// The tokens of one loss call, the same on every slice.
struct HeadInputs {
  const void* hidden = nullptr;  ///< [token_count, dim], `hidden_dtype`.
  DType hidden_dtype = DType::kBf16;
  int64_t token_count = 0;
  /// [token_count]: row of the slice, or -1 where the target is ignored or
  /// another slice's.
  const int64_t* targets = nullptr;
};

/// What a slice says of each token; arrays of [token_count]. Logits are fp32.
struct HeadStatistics {
  float* max_logits = nullptr;     ///< -inf for a slice without rows.
  float* exp_sums = nullptr;       ///< Sum of exp(logit - max_logit).
  float* target_logits = nullptr;  ///< 0 where the target is not here.
};

/// What all slices together say of each token, and the loss's gradient.
struct HeadMerged {
  const float* max_logits = nullptr;  ///< [token_count].
  const float* exp_sums = nullptr;    ///< [token_count].
  /// [token_count]: gradient of the loss of each token; 0 where it is ignored.
  const float* upstream = nullptr;
};

/// Block sizes of the head's GEMMs. They fix the order of sums, so they come
/// from configuration, never from the memory that happens to be free.
struct HeadBlocks {
  int64_t token_count = 1024;
  int64_t row_count = 2048;
};

/// The type in which products are formed and to which the logit gradient is
/// rounded: the common one of hidden and weight, else fp32.
constexpr DType ComputeType(DType hidden, DType weight) {
  return hidden == weight ? hidden : DType::kFp32;
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_LINEAR_CROSS_ENTROPY_H_
