#ifndef ROWHOUSE_KERNELS_LINEAR_CROSS_ENTROPY_H_
#define ROWHOUSE_KERNELS_LINEAR_CROSS_ENTROPY_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/exp.h"

namespace rowhouse::kernels {

// What the head computes, of a token with hidden state h and target y over the
// V rows of the whole table:
//
//   z[v] = h x W[v] + bias[v], with a softcap c: c * tanh(z[v] / c)
//   lse  = max + log(sum), max = largest z, sum = sum of e^(z[v] - max)
//   loss = (1 - s) * w[y] * (lse - z[y])
//        + (s / V) * (w_all * lse - sum of w[v] * z[v]) + l * lse^2
//
// and 0 where the target is ignored; w are class weights (1 where there are
// none), w_all their sum over all V rows, s the label smoothing, l the z-loss's
// factor. The first two terms are PyTorch's cross_entropy with `weight` and
// `label_smoothing`. With g the gradient of the token's loss,
//
//   dz[v] = (e^(z[v] - max) * (p / sum) - u * w[v] - (v == y ? t : 0))
//         * (with a softcap: 1 - tanh^2)
//   p = g * ((1 - s) * w[y] + (s / V) * w_all + 2 * l * lse)
//   t = g * (1 - s) * w[y],  u = g * s / V
//
// Slices know z and w of their rows; everything that is a token's alone (loss,
// p, t, u) is the client's business (head_loss.h). Plain cross entropy is p = t
// = g without u. A mean divides the terms with w by the sum of w[y] over the
// tokens that are not ignored, and the z-loss by their count.

/// A vocabulary slice: the rows of one shard of a dense table.
struct HeadSlice {
  const void* weights = nullptr;  ///< [row_count, dim], `dtype`.
  DType dtype = DType::kBf16;
  const float* bias = nullptr;  ///< [row_count], or null.
  int64_t row_count = 0;
  int64_t dim = 0;
  /// [row_count], finite and not negative; null: 1 each.
  const float* class_weights = nullptr;
  float softcap = 0.0F;  ///< c; 0: logits are not capped. -inf becomes -c.
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

/// What a slice says of each token; arrays of [token_count]. Logits are fp32,
/// and capped where the slice has a softcap.
struct HeadStatistics {
  float* max_logits = nullptr;     ///< -inf for a slice without rows.
  float* exp_sums = nullptr;       ///< Sum of exp(logit - max_logit).
  float* target_logits = nullptr;  ///< 0 where the target is not here.
  /// Null, or the sum of w[v] * z[v], summed as `exp_sums` are but for their
  /// scaling: a block's products in the same order, blocks left to right from
  /// +0. A row of weight 0 adds 0, whatever its logit.
  float* weighted_logit_sums = nullptr;
  /// Null, or the first row of the largest logit; -1 where no logit is it, as
  /// in a slice without rows.
  int64_t* predicted = nullptr;
};

/// What all slices together say of each token, and the loss's gradient; arrays
/// of [token_count].
struct HeadMerged {
  const float* max_logits = nullptr;
  const float* exp_sums = nullptr;
  // Coefficients of the logit gradient, all 0 where the token is ignored. For
  // plain cross entropy `probability` and `target` are one array.
  const float* probability = nullptr;  ///< p.
  const float* target = nullptr;       ///< t.
  const float* smoothing = nullptr;    ///< u; null: 0 each.

  /// Whether a token takes part in the gradients. The arrays are host memory.
  bool TakesPart(int64_t token) const {
    return probability[token] != 0.0F || target[token] != 0.0F ||
           (smoothing != nullptr && smoothing[token] != 0.0F);
  }
};

/// Block sizes of the head's GEMMs. They fix the order of sums, so they come
/// from configuration, never from the memory that happens to be free.
struct HeadBlocks {
  int64_t token_count = 1024;
  int64_t row_count = 2048;
};

/// `count` indices from `first` on.
struct BlockRange {
  int64_t first = 0;
  int64_t count = 0;
};

/// `[0, total)` in blocks of `size`, the last one shorter.
struct BlockCut {
  int64_t total = 0;
  int64_t size = 1;

  constexpr int64_t count() const { return (total + size - 1) / size; }
  constexpr int64_t largest() const { return std::min(total, size); }
  constexpr BlockRange operator[](int64_t block) const {
    return {block * size, std::min(size, total - block * size)};
  }
};

/// The tokens that take part in a call's gradients, by index. `merged` is host
/// memory.
inline std::vector<int64_t> TokensWithGradient(const HeadMerged& merged,
                                               int64_t token_count) {
  std::vector<int64_t> tokens;
  tokens.reserve(static_cast<size_t>(token_count));
  for (int64_t t = 0; t < token_count; ++t) {
    if (merged.TakesPart(t)) tokens.push_back(t);
  }
  return tokens;
}

/// The type in which products are formed and to which the logit gradient is
/// rounded: the common one of hidden and weight, else fp32.
constexpr DType ComputeType(DType hidden, DType weight) {
  return hidden == weight ? hidden : DType::kFp32;
}

/// Memory for the logit gradient of a call, as `HeadHiddenGradient` keeps it
/// for `HeadWeightGradient`: for a slice with a bias each token block's fp32
/// column sums; then fp32 statistics of each token and tile of rows; then the
/// gradient in the compute type, block of rows by block of rows, each with all
/// tokens and a multiple of 8 wide. A backend may have smaller blocks of rows
/// than `HeadBlocks`; there is room for blocks of `kMostRows`, or of more.
///
/// Memory may end anywhere in the gradient: of the blocks those are kept that
/// lie in it whole (`RowsIn`).
struct HeadKept {
  static constexpr int64_t kMostRows = 8192;  ///< Of a block of rows.
  static constexpr int64_t kTileRows = 160;   ///< That share a largest logit.

  /// Elements from token to token of a block of `row_count` rows, as the CUDA
  /// backend has it: a multiple of 8.
  static constexpr int64_t Stride(int64_t row_count) {
    return (row_count + kPadding - 1) / kPadding * kPadding;
  }

  // Column sums come first.
  int64_t statistics_offset = 0;
  int64_t gradient_offset = 0;
  int64_t least_bytes = 0;  ///< With a block of rows as `HeadBlocks` has it.
  int64_t size_bytes = 0;   ///< With all rows.

  static constexpr HeadKept Of(const HeadSlice& slice, int64_t token_count,
                               DType hidden_dtype, const HeadBlocks& blocks) {
    constexpr int64_t kAlignment = 256;
    const auto align = [](int64_t bytes) {
      return (bytes + kAlignment - 1) / kAlignment * kAlignment;
    };
    const BlockCut rows = {slice.row_count,
                           std::min(blocks.row_count, kMostRows)};
    const BlockCut tokens = {token_count, blocks.token_count};
    HeadKept kept;
    const int64_t sums =
        slice.bias == nullptr ? 0 : tokens.count() * slice.row_count * 4;
    kept.statistics_offset = align(sums);
    // A backend's blocks of rows may be these, or those of `blocks`.
    const int64_t tiles = std::max(
        MostTiles(rows), MostTiles({slice.row_count, blocks.row_count}));
    kept.gradient_offset =
        align(kept.statistics_offset + (tiles + 1) * token_count * 4);
    const int64_t row_bytes =
        token_count * SizeOf(ComputeType(hidden_dtype, slice.dtype));
    kept.size_bytes =
        align(kept.gradient_offset +
              row_bytes * (slice.row_count + kPadding * rows.count()));
    const int64_t block_rows = std::min(slice.row_count, blocks.row_count);
    kept.least_bytes = std::min(
        kept.gradient_offset + row_bytes * Stride(block_rows), kept.size_bytes);
    return kept;
  }

  /// How many rows of those that `rows` cuts into blocks have their gradient in
  /// memory of `kept_bytes`: whole blocks, from the first on. `row_bytes` are
  /// those of one row and all tokens that take part.
  constexpr int64_t RowsIn(int64_t kept_bytes, const BlockCut& rows,
                           int64_t row_bytes) const {
    const int64_t room = kept_bytes - gradient_offset;
    if (room < 0 || rows.total == 0) return 0;
    const int64_t block_bytes = row_bytes * Stride(rows.size);
    const int64_t last = rows.count() - 1;
    if (room >= last * block_bytes + row_bytes * Stride(rows[last].count)) {
      return rows.total;
    }
    return room / block_bytes * rows.size;
  }

 private:
  static constexpr int64_t kPadding = 8;

  static constexpr int64_t MostTiles(const BlockCut& rows) {
    return rows.count() * ((rows.largest() + kTileRows - 1) / kTileRows);
  }
};

/// What a set of rows says of one token. A maximum of -inf stands for no rows,
/// or for logits that are all -inf: its sum is 0.
struct HeadPair {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0.0F;

  /// What to subtract from logits: the maximum, or 0 where it is -inf.
  constexpr float Shift() const {
    return max == -std::numeric_limits<float>::infinity() ? 0.0F : max;
  }

  /// `max = larger of both;
  /// sum = sum*e^(max of this - max) + b.sum*e^(b.max - max)`, each operation
  /// one fp32 rounding.
  constexpr HeadPair MergedWith(const HeadPair& b) const {
    HeadPair merged;
    merged.max = max > b.max ? max : b.max;
    const float shift = merged.Shift();
    merged.sum = sum * Exp(max - shift) + b.sum * Exp(b.max - shift);
    return merged;
  }
};

/// Merges the statistics of all slices, in slice order, on the host: the
/// maxima first; then the sums, left to right from +0, of
/// `exp_sum * e^(max of the slice - max)`; then the target logits, left to
/// right from +0, of which at most one is not 0, and the weighted logits
/// likewise; predicted is the row of the first slice with the largest maximum,
/// -1 where none has one. fp32 throughout. `merged` has arrays of its own, and
/// each slice has those that `merged` has.
inline void MergeHeadStatistics(std::span<const HeadStatistics> slices,
                                int64_t token_count,
                                const HeadStatistics& merged) {
  for (int64_t t = 0; t < token_count; ++t) {
    HeadPair all;
    for (const HeadStatistics& slice : slices) {
      all.max = std::max(all.max, slice.max_logits[t]);
    }
    float target_logit = 0.0F;
    for (const HeadStatistics& slice : slices) {
      all.sum += slice.exp_sums[t] * Exp(slice.max_logits[t] - all.Shift());
      target_logit += slice.target_logits[t];
    }
    merged.max_logits[t] = all.max;
    merged.exp_sums[t] = all.sum;
    merged.target_logits[t] = target_logit;
    if (merged.weighted_logit_sums != nullptr) {
      float sum = 0.0F;
      for (const HeadStatistics& slice : slices) {
        sum += slice.weighted_logit_sums[t];
      }
      merged.weighted_logit_sums[t] = sum;
    }
    if (merged.predicted == nullptr) continue;
    merged.predicted[t] = -1;
    for (const HeadStatistics& slice : slices) {
      if (slice.predicted[t] < 0 || slice.max_logits[t] != all.max) continue;
      merged.predicted[t] = slice.predicted[t];
      break;
    }
  }
}

/// The plain cross entropy of a token that is not ignored, from its merged
/// statistics.
inline float HeadLoss(float max_logit, float exp_sum, float target_logit) {
  return std::log(exp_sum) - (target_logit - max_logit);
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_LINEAR_CROSS_ENTROPY_H_
