/// Dense tables and the n-gram embedding on the CUDA backend, as ratios to the
/// time in which the device copies the bytes that the operation must move
/// (`floor`).
///
/// The copy rate is measured in the same run. An iteration is a batch of calls
/// one behind another, so that a call's launch hides behind the one before.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <unordered_set>
#include <vector>

#include "bench/kernels/cuda_bench.h"

namespace rowhouse::kernels {
namespace {

// Normally distributed, in bf16; repeats after a million.
Buffer NormalBf16(int64_t count) {
  constexpr size_t kPeriod = 1000003;
  std::mt19937_64 random(2);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i < kPeriod ? FloatToBf16(normal(random)) : values[i - kPeriod];
  }
  return Upload(values);
}

enum Spread : int64_t { kEven = 0, kZipf = 1, kZipfMixed = 2, kOneRow = 3 };

// Rows of tokens: even, by Zipf's law (rank r with a frequency of about 1 / r),
// the same with ranks in no order, or all one.
std::vector<int64_t> TokenRows(Spread spread, int64_t count,
                               int64_t row_count) {
  std::mt19937_64 random(1);
  std::vector<int64_t> row_of_rank(static_cast<size_t>(row_count));
  std::iota(row_of_rank.begin(), row_of_rank.end(), 0);
  if (spread == kZipfMixed) {
    std::shuffle(row_of_rank.begin(), row_of_rank.end(), random);
  }
  std::vector<int64_t> rows(static_cast<size_t>(count));
  for (int64_t& row : rows) {
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    const auto all = static_cast<double>(row_count);
    const double rank = spread == kEven     ? u * all
                        : spread == kOneRow ? 17
                                            : std::pow(all, u) - 1;
    row = row_of_rank[static_cast<size_t>(rank)];
  }
  return rows;
}

void CudaEmbeddingGradient(benchmark::State& state) {
  constexpr int64_t kRows = 129280;
  constexpr int64_t kDim = 7168;
  constexpr int64_t kTokens = 8192;
  const std::vector<int64_t> host_slots =
      TokenRows(static_cast<Spread>(state.range(0)), kTokens, kRows);
  const std::unordered_set<int64_t> distinct(host_slots.begin(),
                                             host_slots.end());
  const Buffer main_grad = Allocate(kRows * kDim * 4);
  const Buffer rows = NormalBf16(kTokens * kDim);
  const Buffer slots = Upload(host_slots);
  const auto row_count = static_cast<int64_t>(distinct.size());
  Time(state, kTokens * kDim * 2 + row_count * kDim * 8, [&] {
    Check(Cuda().AccumulateEmbeddingGradient(
        {main_grad.data(), DType::kFp32, kRows, kDim, kDim},
        {{slots.as<int64_t>(), static_cast<size_t>(kTokens)},
         rows.data(),
         DType::kBf16,
         kDim}));
  });
  state.counters["distinct_rows"] = static_cast<double>(row_count);
}
BENCHMARK(CudaEmbeddingGradient)
    ->ArgName("spread")
    ->DenseRange(kEven, kOneRow)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void CudaNgramForwardAndBackward(benchmark::State& state) {
  constexpr int64_t kTokens = 49152;
  constexpr int64_t kDim = 768;
  std::mt19937_64 random(3);
  std::vector<int32_t> host_tokens(static_cast<size_t>(kTokens));
  for (int32_t& token : host_tokens) {
    token = static_cast<int32_t>(random() % 50257);
  }
  std::vector<int64_t> host_slots(2 * host_tokens.size());
  std::iota(host_slots.begin(), host_slots.end(), 0);
  std::shuffle(host_slots.begin(), host_slots.end(), random);
  const Buffer tokens = Upload(host_tokens);
  const Buffer slots = Upload(host_slots);
  const Buffer cache = NormalBf16(2 * kTokens * kDim);
  const Buffer out = Allocate(kTokens * kDim * 2);
  const Buffer row_gradient = Allocate(2 * kTokens * kDim * 2);
  SignPool pool;
  pool.seed = 7;
  Time(state, 12 * kTokens * kDim, [&] {
    const std::span<const int32_t> token_span(tokens.as<int32_t>(),
                                              host_tokens.size());
    Check(Cuda().NgramEmbedForward(cache.data(), DType::kBf16, kDim, token_span,
                                   {slots.as<int64_t>(), host_slots.size()},
                                   pool, out.data()));
    Check(Cuda().NgramEmbedBackward(out.data(), DType::kBf16, kDim, token_span,
                                    pool, row_gradient.data()));
  });
}
BENCHMARK(CudaNgramForwardAndBackward)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void CudaAdamW(benchmark::State& state) {
  constexpr int64_t kRows = 32768;
  constexpr int64_t kDim = 7168;
  const Buffer weights = Allocate(kRows * kDim * 2);
  const Buffer first_moment = Allocate(kRows * kDim * 4);
  const Buffer second_moment = Allocate(kRows * kDim * 4);
  const Buffer main_grad = Allocate(kRows * kDim * 4);
  DenseTable table;
  table.row_count = kRows;
  table.dim = kDim;
  table.weights = weights.data();
  table.first_moment = first_moment.as<float>();
  table.second_moment = second_moment.as<float>();
  table.main_grad = main_grad.data();
  const AdamWFactors factors =
      NarrowScalars(AdamWScalars{1e-3, 0.1, 0.9, 0.95, 1e-8, 0.1, 0.05, 1}, 1);
  EventReport report;
  Time(state, kRows * kDim * 28, [&] {
    Check(Cuda().ApplyAdamW(table, factors, NonFinitePolicy::kReject, report));
  });
}
BENCHMARK(CudaAdamW)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rowhouse::kernels
