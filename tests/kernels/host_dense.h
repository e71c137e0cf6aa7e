#ifndef ROWHOUSE_TESTS_KERNELS_HOST_DENSE_H_
#define ROWHOUSE_TESTS_KERNELS_HOST_DENSE_H_

/// Dense tables in a backend's memory, beside the oracle's.

#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/host_table.h"
#include "tests/reference/dense_table.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {

using reference::EagerDense;

inline DType DTypeOf(EagerDense::Type type) {
  switch (type) {
    case EagerDense::Type::kBf16:
      return DType::kBf16;
    case EagerDense::Type::kFp32:
      return DType::kFp32;
    case EagerDense::Type::kFp16:
      return DType::kFp16;
  }
  return DType::kFp32;
}

/// A table whose arrays are all there and zero; those it has not are empty.
inline EagerDense ZeroDense(int64_t row_count, int64_t dim,
                            EagerDense::Type type, bool has_master,
                            bool has_bias) {
  EagerDense table;
  table.row_count = row_count;
  table.dim = dim;
  table.type = type;
  table.has_master = has_master;
  table.has_bias = has_bias;
  const auto elements = static_cast<size_t>(row_count * dim);
  const auto rows = static_cast<size_t>(has_bias ? row_count : 0);
  table.weights.resize(elements);
  table.master.resize(has_master ? elements : 0);
  table.m.resize(elements);
  table.v.resize(elements);
  table.main_grad.resize(elements);
  for (auto* values :
       {&table.bias, &table.bias_grad, &table.bias_m, &table.bias_v}) {
    values->resize(rows);
  }
  return table;
}

inline void FillNormal(rowhouse::testing::Random& random, EagerDense::Type type,
                       float scale, std::vector<float>& values) {
  for (float& x : values) x = reference::Nearest(type, scale * random.Normal());
}

/// The table in a backend's memory.
class BackendDense {
 public:
  BackendDense(Backend& backend, const EagerDense& table)
      : host_(table),
        dtype_(DTypeOf(table.type)),
        main_dtype_(DTypeOf(table.main_type)),
        weights_(backend, Encode(dtype_, table.weights)),
        master_(backend, table.master),
        first_moment_(backend, table.m),
        second_moment_(backend, table.v),
        main_grad_(backend, Encode(main_dtype_, table.main_grad)),
        bias_(backend, table.bias),
        bias_grad_(backend, table.bias_grad),
        bias_first_moment_(backend, table.bias_m),
        bias_second_moment_(backend, table.bias_v) {}

  DenseTable view() const {
    DenseTable table;
    table.row_count = host_.row_count;
    table.dim = host_.dim;
    table.first_row_id = host_.first_row_id;
    table.weights = weights_.data();
    table.dtype = dtype_;
    table.master = host_.has_master ? master_.data() : nullptr;
    table.first_moment = first_moment_.data();
    table.second_moment = second_moment_.data();
    table.main_grad = main_grad_.data();
    table.main_grad_dtype = main_dtype_;
    if (!host_.has_bias) return table;
    table.bias = bias_.data();
    table.bias_grad = bias_grad_.data();
    table.bias_first_moment = bias_first_moment_.data();
    table.bias_second_moment = bias_second_moment_.data();
    return table;
  }

  std::vector<float> weights() const {
    return Decode(dtype_, weights_.Download());
  }
  std::vector<float> master() const { return master_.Download(); }
  std::vector<float> main_grad() const {
    return Decode(main_dtype_, main_grad_.Download());
  }
  std::vector<float> bias() const { return bias_.Download(); }
  std::vector<float> bias_grad() const { return bias_grad_.Download(); }

  /// All of it, as the oracle's table.
  EagerDense Download() const {
    EagerDense table = host_;
    table.weights = weights();
    table.master = master();
    table.m = first_moment_.Download();
    table.v = second_moment_.Download();
    table.main_grad = main_grad();
    table.bias = bias();
    table.bias_grad = bias_grad();
    table.bias_m = bias_first_moment_.Download();
    table.bias_v = bias_second_moment_.Download();
    return table;
  }

  /// Checks all bits.
  void ExpectIs(const EagerDense& want) const {
    const EagerDense got = Download();
    EXPECT_EQ(BitsOf(got.weights), BitsOf(want.weights));
    EXPECT_EQ(BitsOf(got.master), BitsOf(want.master));
    EXPECT_EQ(BitsOf(got.m), BitsOf(want.m));
    EXPECT_EQ(BitsOf(got.v), BitsOf(want.v));
    EXPECT_EQ(BitsOf(got.main_grad), BitsOf(want.main_grad));
    EXPECT_EQ(BitsOf(got.bias), BitsOf(want.bias));
    EXPECT_EQ(BitsOf(got.bias_grad), BitsOf(want.bias_grad));
    EXPECT_EQ(BitsOf(got.bias_m), BitsOf(want.bias_m));
    EXPECT_EQ(BitsOf(got.bias_v), BitsOf(want.bias_v));
  }

 private:
  EagerDense host_;  // As it was uploaded.
  DType dtype_;
  DType main_dtype_;
  BackendArray<uint8_t> weights_;
  BackendArray<float> master_;
  BackendArray<float> first_moment_;
  BackendArray<float> second_moment_;
  BackendArray<uint8_t> main_grad_;
  BackendArray<float> bias_;
  BackendArray<float> bias_grad_;
  BackendArray<float> bias_first_moment_;
  BackendArray<float> bias_second_moment_;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_HOST_DENSE_H_
