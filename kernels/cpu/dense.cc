#include "kernels/cpu/dense.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/statistics.h"
#include "kernels/cpu/words.h"
#include "kernels/hash.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

void ClearIfThere(Executor& executor, float* data, int64_t count) {
  if (data != nullptr) ClearBytes(executor, data, count * kFloatBytes);
}

// Sets row `slot` to the values `value(j)`.
template <typename Weight, typename Value>
void SetRow(const DenseTable& table, int64_t slot, const Value& value) {
  auto* weights = static_cast<Weight*>(table.weights) + slot * table.dim;
  for (int64_t j = 0; j < table.dim; ++j) weights[j] = Narrow<Weight>(value(j));
  if (table.master == nullptr) return;
  float* master = table.master + slot * table.dim;
  for (int64_t j = 0; j < table.dim; ++j) master[j] = value(j);
}

int64_t WeightGrain(const DenseTable& table) {
  return RowGrain(table.dim * (SizeOf(table.dtype) + kFloatBytes));
}

// The words of one row's array, on their way into the row's digest.
ContentSum ArrayContent(DenseArray array, const void* row, int64_t size_bytes,
                        const Secrets& secrets) {
  return RowContent(
      static_cast<int64_t>(array),
      WordsContent(static_cast<const std::byte*>(row), size_bytes, secrets));
}

ContentSum ArraysContent(const DenseTable& table, int64_t slot,
                         const Secrets& secrets) {
  const int64_t weight_bytes = table.dim * SizeOf(table.dtype);
  ContentSum sum = ArrayContent(
      DenseArray::kWeights,
      static_cast<const std::byte*>(table.weights) + slot * weight_bytes,
      weight_bytes, secrets);
  const auto add = [&](DenseArray array, const float* data, int64_t columns) {
    if (data == nullptr) return;
    sum += ArrayContent(array, data + slot * columns, columns * kFloatBytes,
                        secrets);
  };
  add(DenseArray::kMaster, table.master, table.dim);
  add(DenseArray::kFirstMoment, table.first_moment, table.dim);
  add(DenseArray::kSecondMoment, table.second_moment, table.dim);
  add(DenseArray::kBias, table.bias, 1);
  add(DenseArray::kBiasFirstMoment, table.bias_first_moment, 1);
  add(DenseArray::kBiasSecondMoment, table.bias_second_moment, 1);
  return sum;
}

// The row in fp32: itself, or widened in `scratch`.
const float* InFp32(const float* row, int64_t, float*) { return row; }
template <typename T>
const float* InFp32(const T* row, int64_t dim, float* __restrict scratch) {
  for (int64_t j = 0; j < dim; ++j) scratch[j] = Widen(row[j]);
  return scratch;
}

}  // namespace

void InitializeDense(Executor& executor, const DenseTable& table,
                     const Initializer& initializer, bool fresh) {
  const int64_t elements = table.row_count * table.dim;
  if (!fresh) {
    ClearIfThere(executor, table.first_moment, elements);
    ClearIfThere(executor, table.second_moment, elements);
    ClearIfThere(executor, table.bias, table.row_count);
    ClearIfThere(executor, table.bias_first_moment, table.row_count);
    ClearIfThere(executor, table.bias_second_moment, table.row_count);
    ClearMainGrad(executor, table);
  }
  switch (initializer.kind) {
    case Initializer::Kind::kZeros:
      if (!fresh) {
        ClearBytes(executor, table.weights, elements * SizeOf(table.dtype));
        ClearIfThere(executor, table.master, elements);
      }
      return;
    case Initializer::Kind::kUniform:
      WithDenseElement(table.dtype, [&]<typename Weight>() {
        VectorFor(executor, table.row_count, WeightGrain(table),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      SetRow<Weight>(table, i, [&](int64_t j) {
                        return UniformInitial(initializer.seed,
                                              initializer.bound,
                                              table.first_row_id + i, j);
                      });
                    }
                  });
      });
      return;
  }
}

void WriteDenseRows(Executor& executor, const DenseTable& table,
                    int64_t first_slot, int64_t row_count, const void* rows) {
  CopyBytes(executor, rows,
            static_cast<std::byte*>(table.weights) +
                first_slot * table.dim * SizeOf(table.dtype),
            row_count * table.dim * SizeOf(table.dtype));
  if (table.master == nullptr) return;
  WithDenseElement(table.dtype, [&]<typename Weight>() {
    const auto* from = static_cast<const Weight*>(rows);
    float* to = table.master + first_slot * table.dim;
    VectorFor(executor, row_count * table.dim, RowGrain(kFloatBytes),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  to[i] = Widen(from[i]);
                }
              });
  });
}

void ClearMainGrad(Executor& executor, const DenseTable& table) {
  ClearBytes(executor, table.main_grad,
             table.row_count * table.dim * SizeOf(table.main_grad_dtype));
  ClearIfThere(executor, table.bias_grad, table.row_count);
}

void DenseStatistics(Executor& executor, const DenseTable& table,
                     GradientStatistics& statistics) {
  const int64_t row_bytes = table.dim * SizeOf(table.main_grad_dtype);
  WithDenseElement(table.main_grad_dtype, [&]<typename Main>() {
    const auto* main_grad = static_cast<const Main*>(table.main_grad);
    VectorFor(executor, table.row_count, RowGrain(row_bytes),
              [&](int64_t begin, int64_t end) {
                std::vector<float> scratch(static_cast<size_t>(table.dim));
                GradientStatistics share;
                for (int64_t i = begin; i < end; ++i) {
                  const float* row = InFp32(main_grad + i * table.dim,
                                            table.dim, scratch.data());
                  AddRow(share, SumOfSquares(row, table.dim));
                  if (table.bias_grad == nullptr) continue;
                  AddRow(share, SumOfSquares(table.bias_grad + i, 1));
                }
                AddTo(statistics, share);
              });
  });
}

uint64_t DenseDigest(Executor& executor, const DenseTable& table) {
  // The widest array; narrower ones use its first secrets.
  const int64_t fp32_row_bytes = std::max<int64_t>(table.dim, 1) * kFloatBytes;
  const Secrets secrets(fp32_row_bytes);
  std::atomic<uint64_t> total = 0;
  VectorFor(executor, table.row_count, RowGrain(3 * fp32_row_bytes),
            [&](int64_t begin, int64_t end) {
              uint64_t sum = 0;
              for (int64_t i = begin; i < end; ++i) {
                sum += DenseRowDigest(table.first_row_id + i,
                                      ArraysContent(table, i, secrets));
              }
              total.fetch_add(sum, std::memory_order_relaxed);
            });
  return total.load(std::memory_order_relaxed);
}

}  // namespace rowhouse::kernels::cpu
