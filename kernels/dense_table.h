#ifndef ROWHOUSE_KERNELS_DENSE_TABLE_H_
#define ROWHOUSE_KERNELS_DENSE_TABLE_H_

#include <cmath>
#include <cstdint>
#include <span>

#include "kernels/arithmetic.h"
#include "kernels/dtype.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels {

/// One shard of a dense table: weights, the gradient buffer and AdamW's state.
/// All pointers are the backend's memory, row-major and dense; the shard owns
/// it.
struct DenseTable {
  int64_t row_count = 0;
  int64_t dim = 0;
  int64_t first_row_id = 0;  ///< Global id of slot 0.

  void* weights = nullptr;  ///< [row_count, dim], `dtype`.
  DType dtype = DType::kBf16;
  float* master = nullptr;         ///< [row_count, dim], or null.
  float* first_moment = nullptr;   ///< [row_count, dim].
  float* second_moment = nullptr;  ///< [row_count, dim].
  void* main_grad = nullptr;       ///< [row_count, dim], `main_grad_dtype`.
  DType main_grad_dtype = DType::kFp32;

  /// A bias a row, all four [row_count], or all null.
  float* bias = nullptr;
  float* bias_grad = nullptr;
  float* bias_first_moment = nullptr;
  float* bias_second_moment = nullptr;
};

/// The weights as rows to read (`Backend::GatherRows`). To write them use
/// `WriteDenseRows`, which keeps the master.
inline RowTable WeightRows(const DenseTable& table) {
  RowTable rows;
  rows.weights = table.weights;
  rows.row_count = table.row_count;
  rows.dim = table.dim;
  rows.dtype = table.dtype;
  rows.first_row_id = table.first_row_id;
  return rows;
}

/// A gradient buffer: row `i` begins at element `i * row_stride` of `data`.
struct MainGrad {
  void* data = nullptr;
  DType dtype = DType::kFp32;
  int64_t row_count = 0;
  int64_t dim = 0;
  int64_t row_stride = 0;  ///< At least `dim`.
};

inline MainGrad MainGradOf(const DenseTable& table) {
  return {table.main_grad, table.main_grad_dtype, table.row_count, table.dim,
          table.dim};
}

/// One part of an embedding's gradient: row `i`, the gradient of row
/// `slots[i]` of the table, begins at element `i * row_stride` of `rows`.
struct EmbeddingGradient {
  std::span<const int64_t> slots;  ///< In [0, row_count), any order.
  const void* rows = nullptr;
  DType dtype = DType::kBf16;
  int64_t row_stride = 0;  ///< At least `dim`.
};

/// Scalars of one AdamW event as the committer gives them, in fp64.
struct AdamWScalars {
  double learning_rate = 0;
  double weight_decay = 0;
  double beta1 = 0;             ///< In [0, 1).
  double beta2 = 0;             ///< In [0, 1).
  double eps = 0;               ///< At least 0.
  double bias_correction1 = 1;  ///< 1 - beta1^n, n counts applied events.
  double bias_correction2 = 1;  ///< 1 - beta2^n.
  double gradient_scale = 1;

  friend bool operator==(const AdamWScalars&, const AdamWScalars&) = default;
};

/// The same, each derived in fp64 and narrowed once.
struct AdamWFactors {
  float grad_mul;      ///< gradient_scale / W.
  float decay_mul;     ///< 1 - learning_rate * weight_decay.
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step;              ///< learning_rate / bias_correction1.
  float root_correction2;  ///< sqrt(bias_correction2).
  float eps;
};

/// `divisor` is W for a table that averages, 1 for one that sums.
inline AdamWFactors NarrowScalars(const AdamWScalars& s, int64_t divisor) {
  return {static_cast<float>(s.gradient_scale / static_cast<double>(divisor)),
          static_cast<float>(1.0 - s.learning_rate * s.weight_decay),
          static_cast<float>(s.beta1),
          static_cast<float>(1.0 - s.beta1),
          static_cast<float>(s.beta2),
          static_cast<float>(1.0 - s.beta2),
          static_cast<float>(s.learning_rate / s.bias_correction1),
          static_cast<float>(std::sqrt(s.bias_correction2)),
          static_cast<float>(s.eps)};
}

/// One element's AdamW state.
struct AdamWElement {
  float weight;
  float first_moment;
  float second_moment;
};

/// One AdamW step of one element, for the gradient `g` of main_grad:
/// `g = g*grad_mul; p = p*decay_mul; m = beta1*m + (1-beta1)*g;
/// v = beta2*v + ((1-beta2)*g)*g;
/// p = p - (step*m) / (sqrt(v)/root_correction2 + eps)`, each operation one
/// fp32 rounding.
constexpr AdamWElement UpdateAdamW(const AdamWElement& old, float main_grad,
                                   const AdamWFactors& f) {
  const float g = main_grad * f.grad_mul;
  const float p = old.weight * f.decay_mul;
  const float m = f.beta1 * old.first_moment + f.one_minus_beta1 * g;
  const float v = f.beta2 * old.second_moment + f.one_minus_beta2 * g * g;
  const float denominator = SquareRoot(v) / f.root_correction2 + f.eps;
  return {p - f.step * m / denominator, m, v};
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_DENSE_TABLE_H_
