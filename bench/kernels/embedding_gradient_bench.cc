/// An embedding's gradient into main_grad.
///
/// 8,192 bf16 tokens into an fp32 main_grad of 128,256 rows, the tokens spread
/// evenly, by Zipf's law, or all the same. Each call has the next of many
/// batches, together 512 MiB of gradients, so that no call finds its own in the
/// caches. Of main_grad the same holds where tokens spread evenly; Zipf's
/// frequent rows stay in the caches, and so does the one row.

#include <cstdint>
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

int64_t RowCount() { return Size(128256, 512); }
int64_t TokenCount() { return Size(8192, 64); }

// So many that their gradients are 512 MiB or more.
int64_t BatchCount(int64_t dim) {
  const int64_t batch_bytes = 2 * TokenCount() * dim;
  return Size(((int64_t{512} << 20) + batch_bytes - 1) / batch_bytes, 2);
}

struct Batches {
  Batches(int64_t dim, Spread spread) : main_grad(RowCount() * dim) {
    const std::vector<uint16_t> gradients = NormalBf16();
    const int64_t batch_count = BatchCount(dim);
    for (int64_t i = 0; i < batch_count; ++i) {
      const std::vector<int64_t> drawn = DrawNumbers(
          spread, TokenCount(), RowCount(), static_cast<uint64_t>(i));
      distinct_rows += static_cast<double>(CountDistinct(drawn)) /
                       static_cast<double>(batch_count);
      slots.emplace_back(drawn);
      rows.emplace_back(TokenCount() * dim, gradients);
    }
  }

  Array<float> main_grad;
  std::vector<Array<int64_t>> slots;
  std::vector<Array<uint16_t>> rows;
  double distinct_rows = 0;  // On average.
  size_t next = 0;
};

void AccumulateEmbeddingGradient(benchmark::State& state, Spread spread) {
  const int64_t dim = state.range(0);
  auto& batches = Kept<Batches>(dim, spread);
  const auto tokens = static_cast<double>(TokenCount());
  const auto wide = static_cast<double>(dim);
  state.counters["distinct_rows"] = batches.distinct_rows;
  Measure(state,
          {.bytes = tokens * 2 * wide + batches.distinct_rows * 8 * wide,
           .items = tokens},
          [&] {
            const size_t i = batches.next++ % batches.slots.size();
            return TheBackend().AccumulateEmbeddingGradient(
                {batches.main_grad.data(), DType::kFp32, RowCount(), dim, dim},
                {batches.slots[i].span(), batches.rows[i].data(), DType::kBf16,
                 dim});
          });
}
void Dims(benchmark::internal::Benchmark* bench) {
  bench->Apply(Defaults)->ArgName("dim")->Arg(768)->Arg(4096);
}
BENCHMARK_CAPTURE(AccumulateEmbeddingGradient, even, Spread::kEven)
    ->Apply(Dims);
BENCHMARK_CAPTURE(AccumulateEmbeddingGradient, zipf, Spread::kZipf)
    ->Apply(Dims);
BENCHMARK_CAPTURE(AccumulateEmbeddingGradient, one_row, Spread::kOne)
    ->Apply(Dims);

}  // namespace
}  // namespace rowhouse::bench
