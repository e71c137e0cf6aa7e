/// A dense table: initialized, written, cleared, updated by AdamW, summed up.
/// bf16 weights, fp32 everything else, a bias; 65,536 rows of 768.
/// Gradients and moments are normal numbers, save the bias's: zeros.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "bench/support/array.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::bench {
namespace {

using kernels::DenseTable;
using kernels::Initializer;

constexpr int64_t kDim = 768;
constexpr float kGradient = 0.01F;

class Dense {
 public:
  // A master where `master` is 1.
  explicit Dense(int64_t master)
      : weights_(elements(), NormalBf16(0.02F)),
        master_(master != 0 ? elements() : 0),
        first_moment_(elements(), Normal(kGradient)),
        second_moment_(elements(), NormalSquares(kGradient)),
        main_grad_(elements(), Normal(kGradient)),
        gradients_(elements(), Normal(kGradient)),
        bias_(4 * row_count()) {}

  static int64_t row_count() { return Size(65536, 64); }
  static int64_t elements() { return row_count() * kDim; }

  // Gradients again, where a case before has cleared them.
  void FillMainGrad() { main_grad_.CopyFrom(gradients_); }

  DenseTable view() const {
    const int64_t rows = row_count();
    DenseTable table;
    table.row_count = rows;
    table.dim = kDim;
    table.weights = weights_.data();
    table.master = master_.data();
    table.first_moment = first_moment_.data();
    table.second_moment = second_moment_.data();
    table.main_grad = main_grad_.data();
    table.bias = bias_.data();
    table.bias_grad = bias_.data() + rows;
    table.bias_first_moment = bias_.data() + 2 * rows;
    table.bias_second_moment = bias_.data() + 3 * rows;
    return table;
  }

  // `element` bytes each of the elements, and `bias` of each row.
  static Work WorkOf(double element, double bias) {
    const auto rows = static_cast<double>(row_count());
    return {.bytes = rows * (kDim * element + bias), .items = rows};
  }

 private:
  Array<uint16_t> weights_;
  Array<float> master_;
  Array<float> first_moment_;
  Array<float> second_moment_;
  Array<float> main_grad_;
  Array<float> gradients_;  // What main_grad is filled with.
  Array<float> bias_;
};

// Both moments, the gradient and the bias's own are read and written (the
// gradient to be cleared), and so are the weights or, with a master, the
// master; then the weights are only written. Each call has gradients anew.
void ApplyAdamW(benchmark::State& state) {
  Dense& dense = Kept<Dense>(state.range(0));
  const kernels::AdamWFactors factors = NarrowScalars(
      kernels::AdamWScalars{1e-3, 0.1, 0.9, 0.95, 1e-8, 0.1, 0.05, 1}, 1);
  const double weights = state.range(0) != 0 ? 8 + 2 : 2 + 2;
  kernels::EventReport report;
  Measure(
      state, Dense::WorkOf(24 + weights, 32),
      [&] {
        return TheBackend().ApplyAdamW(
            dense.view(), factors, kernels::NonFinitePolicy::kReject, report);
      },
      [&] { dense.FillMainGrad(); });
  Require(state, report.row_visits > 0 && report.untouched_row_count == 0,
          "every row changes");
}

void ClearMainGrad(benchmark::State& state) {
  const Dense& dense = Kept<Dense>(state.range(0));
  Measure(state, Dense::WorkOf(4, 4),
          [&] { return TheBackend().ClearMainGrad(dense.view()); });
}

void DenseStatistics(benchmark::State& state) {
  Dense& dense = Kept<Dense>(state.range(0));
  dense.FillMainGrad();
  kernels::GradientStatistics statistics;
  Measure(state, Dense::WorkOf(4, 4), [&] {
    return TheBackend().DenseStatistics(dense.view(), statistics);
  });
  const std::span<const int64_t> sums = statistics.significand_sums;
  Require(state, std::any_of(sums.begin(), sums.end(), std::identity()),
          "gradients are not zero");
}

void DenseDigest(benchmark::State& state) {
  const Dense& dense = Kept<Dense>(state.range(0));
  uint64_t sum = 0;
  Measure(state, Dense::WorkOf(state.range(0) != 0 ? 14 : 10, 12),
          [&] { return TheBackend().DenseDigest(dense.view(), sum); });
}

void WriteDenseRows(benchmark::State& state) {
  const Dense& dense = Kept<Dense>(state.range(0));
  const Array<uint16_t> rows(Dense::elements(), NormalBf16());
  Measure(state, Dense::WorkOf(state.range(0) != 0 ? 8 : 4, 0), [&] {
    return TheBackend().WriteDenseRows(dense.view(), 0, Dense::row_count(),
                                       rows.data());
  });
}

void InitializeDense(benchmark::State& state) {
  const Dense& dense = Kept<Dense>(state.range(0));
  const Initializer initializer = {Initializer::Kind::kUniform, 1, 0.1F};
  Measure(state, Dense::WorkOf(state.range(0) != 0 ? 18 : 14, 16), [&] {
    return TheBackend().InitializeDense(dense.view(), initializer, false);
  });
}

// All cases of a table before the other is made.
const bool registered = [] {
  for (const int64_t master : {0, 1}) {
    const auto add = [=](const char* name, void (*run)(benchmark::State&)) {
      benchmark::RegisterBenchmark(name, run)
          ->Apply(Defaults)
          ->ArgName("master")
          ->Arg(master);
    };
    add("ApplyAdamW", ApplyAdamW);
    add("ClearMainGrad", ClearMainGrad);
    add("DenseStatistics", DenseStatistics);
    add("DenseDigest", DenseDigest);
    add("WriteDenseRows", WriteDenseRows);
    add("InitializeDense", InitializeDense);
  }
  return true;
}();

}  // namespace
}  // namespace rowhouse::bench
