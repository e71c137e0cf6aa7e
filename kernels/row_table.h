#ifndef ROWHOUSE_KERNELS_ROW_TABLE_H_
#define ROWHOUSE_KERNELS_ROW_TABLE_H_

#include <bit>
#include <cstdint>
#include <span>

#include "kernels/arithmetic.h"
#include "kernels/dtype.h"

namespace rowhouse::kernels {

/// What becomes of gradients that are not finite.
enum class NonFinitePolicy : uint8_t {
  kReject = 1,     ///< A part with one is refused when it lands.
  kSkipRow = 2,    ///< It lands; the merged row is left as it was.
  kPropagate = 3,  ///< It is applied; NaNs are stored in canonical form.
};

/// Scalars of one row-Adam event as the committer gives them, in fp64.
struct RowAdamScalars {
  double step_size = 0;       ///< lr' * sqrt(1 - beta2^n).
  double decay = 0;           ///< lr'^2 * weight_decay * multiplier.
  double beta2 = 0;           ///< In [0, 1).
  double eps = 0;             ///< At least 0.
  double gradient_scale = 1;  ///< Factor on every gradient (clipping, 1/loss scale).

  friend bool operator==(const RowAdamScalars&, const RowAdamScalars&) = default;
};

/// Narrows once: products and quotients in fp64, each result rounded to fp32.
/// `divisor` is W, the trainer count, for a table that averages, and 1 for one
/// that sums.
inline RowAdamFactors NarrowScalars(const RowAdamScalars& scalars,
                                    int64_t divisor) {
  const double scale =
      scalars.gradient_scale / static_cast<double>(divisor);
  return {static_cast<float>(scalars.step_size),
          static_cast<float>(scalars.decay),
          static_cast<float>(scalars.beta2),
          static_cast<float>(scalars.eps),
          static_cast<float>(scale),
          static_cast<float>((1.0 - scalars.beta2) * (scale * scale))};
}

/// The optimizer's state of one row. Its words lie side by side, for an event
/// reads and writes both, of rows far apart.
struct alignas(8) RowState {
  float second_moment = 0.0F;
  int32_t last_event = 0;  ///< That updated the row; 0: none.
};

/// One shard's rows and their optimizer state. All pointers are the backend's
/// memory; the shard owns it.
struct RowTable {
  void* weights = nullptr;     ///< [row_count, dim], row-major, `dtype`.
  RowState* states = nullptr;  ///< [row_count].
  int64_t row_count = 0;
  int64_t dim = 0;
  DType dtype = DType::kBf16;
  int64_t first_row_id = 0;  ///< Global id of slot 0.

  int64_t row_bytes() const { return dim * SizeOf(dtype); }
};

/// beta2 of the applied events; index 0 is unused, a skipped event holds 1.
/// Backend memory, valid during the call it is passed to.
struct Beta2History {
  const float* beta2 = nullptr;       ///< [event_count + 1].
  const float* suffix_min = nullptr;  ///< [event_count + 1]; see arithmetic.h.
  int64_t event_count = 0;
};

/// One staged part: `row_count` gradient rows and the slots they belong to, in
/// the order of the part. Backend memory.
struct GradientPart {
  const int64_t* slots = nullptr;  ///< [row_count], in [0, table.row_count).
  const void* rows = nullptr;      ///< [row_count, dim], the gradient dtype.
  int64_t row_count = 0;
};

/// One event: parts in canonical order (trainer_rank, then part).
struct RowAdamEvent {
  std::span<const GradientPart> parts;
  DType gradient_dtype = DType::kBf16;
  RowAdamFactors factors{};
  NonFinitePolicy policy = NonFinitePolicy::kReject;
  /// Events before this one: this is event `history.event_count + 1`.
  Beta2History history;
};

/// What an event touched, counted where it was touched.
struct EventReport {
  int64_t entry_count = 0;          ///< Gradient rows merged.
  int64_t row_visits = 0;           ///< Distinct rows read.
  int64_t untouched_row_count = 0;  ///< Rows left as they were: not finite.
  int64_t bytes_moved = 0;          ///< Gradients, weights and state, read and written.
};

/// Statistics of the merged gradient of an event, before it is applied.
///
/// Each row's fp32 sum of squares (arithmetic.h) enters exactly: a finite value
/// with biased exponent `x` and 24-bit significand `m` equals
/// `m * 2^(max(x, 1) - 150)`, and `m` is added to
/// `significand_sums[max(x, 1)]`. Shards' sums add exactly.
struct GradientStatistics {
  static constexpr int kExponents = 255;  // 1..254 are used.

  int64_t significand_sums[kExponents] = {};
  int64_t row_count = 0;             ///< Distinct rows.
  int64_t non_finite_row_count = 0;  ///< Rows whose sum or square sum is not finite; in no sum.

  constexpr GradientStatistics& operator+=(const GradientStatistics& other) {
    for (int x = 0; x < kExponents; ++x) {
      significand_sums[x] += other.significand_sums[x];
    }
    row_count += other.row_count;
    non_finite_row_count += other.non_finite_row_count;
    return *this;
  }
};

/// Where the sum of squares of one row enters `GradientStatistics`.
struct SquareTerm {
  uint32_t exponent;
  uint32_t significand;

  /// REQUIRES: `sum_of_squares` is finite.
  static constexpr SquareTerm Of(float sum_of_squares) {
    const auto bits = std::bit_cast<uint32_t>(sum_of_squares);
    const uint32_t exponent = bits >> 23;  // The sign is never set.
    const uint32_t fraction = bits & 0x7fffffU;
    if (exponent == 0) return {1, fraction};
    return {exponent, fraction | 0x800000U};
  }
};

/// What landing found in a run of gradient or weight rows.
struct RowScan {
  static constexpr int64_t kNone = -1;
  /// First element that is not finite, as row and column of the run, or kNone.
  int64_t non_finite_row = kNone;
  int64_t non_finite_column = kNone;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_ROW_TABLE_H_
