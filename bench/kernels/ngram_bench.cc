/// The n-gram embedding of a client: row ids, forward, backward, and the sum of
/// a cycle's gradients. bf16 rows of 768.

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "bench/support/array.h"
#include "bench/support/inputs.h"
#include "bench/support/kept.h"
#include "bench/support/measure.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::bench {
namespace {

using kernels::DType;
using kernels::SignPool;

constexpr int64_t kDim = 768;
constexpr double kRowBytes = 2 * kDim;
constexpr SignPool kPool = {.seed = 1};

std::vector<int32_t> RandomTokens(int64_t count) {
  std::mt19937 random(4);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) {
    token = static_cast<int32_t>(random() % 50000);
  }
  return tokens;
}

void NgramRowIds(benchmark::State& state) {
  const Array<int32_t> tokens(RandomTokens(Size(1 << 22, 256)));
  const Array<int64_t> row_ids(2 * tokens.count());
  const auto count = static_cast<double>(tokens.count());
  Measure(state, {.bytes = count * (4 + 16), .items = count}, [&] {
    return TheBackend().NgramRowIds(
        tokens.span(), 1'000'000,
        {row_ids.data(), static_cast<size_t>(row_ids.count())});
  });
}
BENCHMARK(NgramRowIds)->Apply(Defaults);

// Of a cycle of four steps: tokens are read, distinct ids written.
void NgramWantList(benchmark::State& state) {
  constexpr int64_t kSteps = 4;
  const Array<int32_t> tokens(RandomTokens(kSteps * Size(49152, 256)));
  const Array<int64_t> want(2 * tokens.count());
  const auto step_size = static_cast<size_t>(tokens.count() / kSteps);
  std::vector<std::span<const int32_t>> steps;
  for (size_t i = 0; i < kSteps; ++i) {
    steps.push_back(tokens.span().subspan(i * step_size, step_size));
  }
  int64_t want_count = 0;
  const auto count = static_cast<double>(tokens.count());
  Measure(state, {.bytes = count * (4 + 16), .items = count}, [&] {
    return TheBackend().NgramWantList(
        steps, 84602880, {want.data(), static_cast<size_t>(want.count())},
        want_count);
  });
}
BENCHMARK(NgramWantList)->Apply(Defaults);

// Of a step's row ids, in a cycle's want list.
void FindSlots(benchmark::State& state) {
  const Array<int64_t> want(SpreadNumbers(Size(393216, 256), 84602880, 5));
  const Array<int64_t> row_ids(
      Shuffled(SpreadNumbers(want.count(), 84602880, 5)));
  const Array<int64_t> slots(want.count());
  int64_t missing = 0;
  const auto count = static_cast<double>(want.count());
  Measure(state, {.bytes = 16 * count, .items = count}, [&] {
    return TheBackend().FindSlots(
        want.span(), row_ids.span(),
        {slots.data(), static_cast<size_t>(slots.count())}, missing);
  });
}
BENCHMARK(FindSlots)->Apply(Defaults);

// One batch, every row of the cache in use once.
struct Batch {
  Batch()
      : tokens(RandomTokens(Size(131072, 64))),
        slots(
            Shuffled(SpreadNumbers(2 * tokens.count(), 2 * tokens.count(), 5))),
        two_rows(2 * tokens.count() * kDim, NormalBf16()),
        one_row(tokens.count() * kDim, NormalBf16()) {}

  // A token costs three rows of memory, forward and backward.
  Work WorkOf() const {
    const auto count = static_cast<double>(tokens.count());
    return {.bytes = count * 3 * kRowBytes, .items = count};
  }

  Array<int32_t> tokens;
  Array<int64_t> slots;
  Array<uint16_t> two_rows;  // The cache, or the row gradient.
  Array<uint16_t> one_row;   // The embedding, or its gradient.
};

void NgramEmbedForward(benchmark::State& state) {
  const Batch& batch = Kept<Batch>();
  Measure(state, batch.WorkOf(), [&] {
    return TheBackend().NgramEmbedForward(
        batch.two_rows.data(), DType::kBf16, kDim, batch.tokens.span(),
        batch.slots.span(), kPool, batch.one_row.data());
  });
}
BENCHMARK(NgramEmbedForward)->Apply(Defaults);

void NgramEmbedBackward(benchmark::State& state) {
  const Batch& batch = Kept<Batch>();
  Measure(state, batch.WorkOf(), [&] {
    return TheBackend().NgramEmbedBackward(batch.one_row.data(), DType::kBf16,
                                           kDim, batch.tokens.span(), kPool,
                                           batch.two_rows.data());
  });
}
BENCHMARK(NgramEmbedBackward)->Apply(Defaults);

// Eight steps of a cycle, their bigrams and trigrams drawn by Zipf's law from
// the rows of the cache.
struct Cycle {
  static constexpr int64_t kSteps = 8;

  Cycle() : tokens(RandomTokens(Size(16384, 32))), out(slot_count() * kDim) {
    const std::vector<uint16_t> values = NormalBf16();
    for (uint64_t i = 0; i < kSteps; ++i) {
      slots.emplace_back(
          DrawNumbers(Spread::kZipf, 2 * tokens.count(), slot_count(), i));
      gradients.emplace_back(tokens.count() * kDim, values);
      steps.push_back(
          {tokens.span(), slots.back().span(), gradients.back().data()});
    }
  }

  static int64_t slot_count() { return Size(131072, 64); }

  Array<int32_t> tokens;
  Array<uint16_t> out;
  std::vector<Array<int64_t>> slots;
  std::vector<Array<uint16_t>> gradients;
  std::vector<kernels::NgramStep> steps;
};

// Each gradient is read once at least, and each slot written.
void SumNgramGradients(benchmark::State& state) {
  const Cycle& cycle = Kept<Cycle>();
  const auto tokens = static_cast<double>(Cycle::kSteps * cycle.tokens.count());
  const auto slots = static_cast<double>(Cycle::slot_count());
  Measure(state, {.bytes = (tokens + slots) * kRowBytes, .items = tokens}, [&] {
    return TheBackend().SumNgramGradients(cycle.steps, DType::kBf16, kDim,
                                          kPool, Cycle::slot_count(),
                                          DType::kBf16, cycle.out.data());
  });
}
BENCHMARK(SumNgramGradients)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
