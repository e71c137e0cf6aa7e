/// Memory of a backend, and rows that land in it from the host's.

#include <cstdint>
#include <span>
#include <string_view>
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

constexpr int64_t kDim = 768;

// And gives it back. Nobody touches it: what it costs to have, not to use.
void Allocate(benchmark::State& state) {
  const int64_t size = Size(int64_t{256} << 20, 4096);
  Measure(state, {}, [&] { return TheBackend().Allocate(size).status(); });
}
BENCHMARK(Allocate)->Apply(Defaults);

// Rows in the host's memory, and room for them in the backend's.
struct Landing {
  Landing()
      : from(static_cast<size_t>(row_count() * kDim)), to(row_count() * kDim) {
    const std::vector<uint16_t> values = NormalBf16();
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] = values[i % values.size()];
    }
  }

  static int64_t row_count() { return Size(262144, 64); }

  // Each byte is read and written.
  Work WorkOf() const {
    return {.bytes = 2.0 * static_cast<double>(to.size_bytes()),
            .items = static_cast<double>(row_count())};
  }

  std::vector<uint16_t> from;
  Array<uint16_t> to;
};

void Copy(benchmark::State& state) {
  const Landing& landing = Kept<Landing>();
  Measure(state, landing.WorkOf(), [&] {
    return TheBackend().Copy(landing.from.data(), landing.to.data(),
                             landing.to.size_bytes());
  });
}
BENCHMARK(Copy)->Apply(Defaults);

// As rows of an answer come, in order, or at the places of another.
void PlaceRows(benchmark::State& state) {
  const Landing& landing = Kept<Landing>();
  const bool in_order = state.range(0) == 0;
  const Array<int64_t> positions(
      Shuffled(SpreadNumbers(Landing::row_count(), Landing::row_count(), 7)));
  const std::string_view rows(
      reinterpret_cast<const char*>(landing.from.data()),
      landing.from.size() * sizeof(uint16_t));
  Measure(state, landing.WorkOf(), [&] {
    return TheBackend().PlaceRows(
        rows, 2 * kDim,
        in_order ? std::span<const int64_t>() : positions.span(),
        landing.to.data());
  });
}
BENCHMARK(PlaceRows)->Apply(Defaults)->ArgName("apart")->Arg(0)->Arg(1);

void AddFloats(benchmark::State& state) {
  const Array<float> from(Size(1 << 26, 1024), Normal());
  const Array<float> to(from.count());
  const auto count = static_cast<double>(from.count());
  Measure(state, {.bytes = 12 * count, .items = count}, [&] {
    return TheBackend().AddFloats(from.data(), to.data(), from.count());
  });
}
BENCHMARK(AddFloats)->Apply(Defaults);

void NarrowFloats(benchmark::State& state) {
  const Array<float> from(Size(1 << 26, 1024), Normal());
  const Array<uint16_t> to(from.count());
  const auto count = static_cast<double>(from.count());
  Measure(state, {.bytes = 6 * count, .items = count}, [&] {
    return TheBackend().NarrowFloats(from.data(), from.count(),
                                     kernels::DType::kBf16, to.data());
  });
}
BENCHMARK(NarrowFloats)->Apply(Defaults);

void LandRows(benchmark::State& state) {
  const Landing& landing = Kept<Landing>();
  kernels::ContentSum content;
  kernels::RowScan scan;
  Measure(state, landing.WorkOf(), [&] {
    return TheBackend().LandRows(landing.from.data(), landing.to.data(),
                                 Landing::row_count(), kDim,
                                 kernels::DType::kBf16, 0, content, scan);
  });
  Require(state, scan.non_finite_row == kernels::RowScan::kNone,
          "every row is finite");
}
BENCHMARK(LandRows)->Apply(Defaults);

}  // namespace
}  // namespace rowhouse::bench
