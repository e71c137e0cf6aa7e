#ifndef ROWHOUSE_TESTS_REFERENCE_DENSE_TABLE_H_
#define ROWHOUSE_TESTS_REFERENCE_DENSE_TABLE_H_

#include <cstdint>
#include <vector>

namespace rowhouse::reference {

/// A dense table with its optimizer, updated the plain way: one scalar
/// operation a line, none of the project's own arithmetic.
struct EagerDense {
  enum class Type { kBf16, kFp32, kFp16 };

  int64_t row_count = 0;
  int64_t dim = 0;
  int64_t first_row_id = 0;
  Type type = Type::kBf16;
  Type main_type = Type::kFp32;
  bool has_master = false;
  bool has_bias = false;

  std::vector<float> weights;
  std::vector<float> master;
  std::vector<float> m;
  std::vector<float> v;
  std::vector<float> main_grad;
  std::vector<float> bias;
  std::vector<float> bias_grad;
  std::vector<float> bias_m;
  std::vector<float> bias_v;

  struct Scalars {
    double learning_rate, weight_decay, beta1, beta2, eps;
    int event;
    double gradient_scale;
  };

  /// Applies AdamW and clears the gradients; `divisor` is the trainer count or
  /// 1. Gives the number of rows that kept their bits.
  int64_t ApplyAdamW(const Scalars& scalars, int divisor,
                     bool keep_non_finite_rows);

  /// Adds an embedding's gradient rows, in the type `gradient_type`.
  void AddEmbeddingGradient(const std::vector<int64_t>& slots,
                            const std::vector<float>& rows, Type gradient_type);

  uint64_t Digest() const;
};

/// The nearest value of a type, ties to even, NaN the canonical one.
float Nearest(EagerDense::Type type, float x);

}  // namespace rowhouse::reference

#endif  // ROWHOUSE_TESTS_REFERENCE_DENSE_TABLE_H_
