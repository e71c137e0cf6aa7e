/// An embedding's gradient into main_grad on the CPU backend.
///
/// 8,192 bf16 tokens into an fp32 main_grad of 128,256 rows, the tokens spread
/// evenly, by Zipf's law, or all the same.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <unordered_set>

#include "bench/kernels/ceiling.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {
namespace {

constexpr int64_t kRows = 128256;
constexpr int64_t kTokens = 8192;

enum Spread : int64_t { kEven = 0, kZipf = 1, kOneRow = 2 };

Backend& CpuBackend() {
  static Backend* const backend =
      MakeBackend(BackendOptions()).value().release();
  return *backend;
}

int64_t RandomRow(Spread spread, std::mt19937_64& random) {
  const double u = std::uniform_real_distribution<double>(0, 1)(random);
  switch (spread) {
    case kEven:
      return static_cast<int64_t>(u * kRows);
    case kZipf:  // Rank r with a frequency of about 1 / r.
      return static_cast<int64_t>(std::pow(kRows, u)) - 1;
    case kOneRow:
      return 17;
  }
  return 0;
}

void AccumulateEmbeddingGradient(benchmark::State& state) {
  const int64_t dim = state.range(0);
  const auto spread = static_cast<Spread>(state.range(1));
  Backend& backend = CpuBackend();
  const Buffer main_grad = backend.Allocate(kRows * dim * 4).value();
  const Buffer rows = backend.Allocate(kTokens * dim * 2).value();
  const Buffer slots = backend.Allocate(kTokens * 8).value();
  std::memset(main_grad.data(), 0, static_cast<size_t>(kRows * dim * 4));
  std::memset(rows.data(), 0x3f, static_cast<size_t>(kTokens * dim * 2));
  std::mt19937_64 random(1);
  std::unordered_set<int64_t> distinct;
  for (int64_t i = 0; i < kTokens; ++i) {
    slots.as<int64_t>()[i] = RandomRow(spread, random);
    distinct.insert(slots.as<int64_t>()[i]);
  }
  for (auto _ : state) {
    backend
        .AccumulateEmbeddingGradient(
            {main_grad.data(), DType::kFp32, kRows, dim, dim},
            {std::span<const int64_t>(slots.as<int64_t>(), kTokens),
             rows.data(), DType::kBf16, dim})
        .IgnoreError();
  }
  const auto row_count = static_cast<int64_t>(distinct.size());
  state.SetItemsProcessed(state.iterations() * kTokens);
  SetBytesMoved(state,
                state.iterations() * (kTokens * dim * 2 + row_count * dim * 8));
  state.counters["distinct_rows"] = static_cast<double>(row_count);
}
BENCHMARK(AccumulateEmbeddingGradient)
    ->ArgNames({"dim", "spread"})
    ->ArgsProduct({{768, 4096}, {kEven, kZipf, kOneRow}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace rowhouse::kernels
