/// One AdamW event on the CPU backend: bytes moved a second, as the event
/// counts them.

#include <cstdint>
#include <cstring>

#include "bench/kernels/ceiling.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {
namespace {

constexpr int64_t kRows = 32768;
constexpr int64_t kDim = 768;
constexpr int64_t kElements = kRows * kDim;

Backend& CpuBackend() {
  static Backend* const backend =
      MakeBackend(BackendOptions()).value().release();
  return *backend;
}

Buffer Zeros(int64_t size_bytes) {
  Buffer buffer = CpuBackend().Allocate(size_bytes).value();
  std::memset(buffer.data(), 0, static_cast<size_t>(size_bytes));
  return buffer;
}

void ApplyAdamW(benchmark::State& state) {
  const bool has_master = state.range(0) != 0;
  const Buffer weights = Zeros(kElements * 2);
  const Buffer master = Zeros(has_master ? kElements * 4 : 0);
  const Buffer first_moment = Zeros(kElements * 4);
  const Buffer second_moment = Zeros(kElements * 4);
  const Buffer main_grad = Zeros(kElements * 4);
  DenseTable table;
  table.row_count = kRows;
  table.dim = kDim;
  table.weights = weights.data();
  table.master = has_master ? master.as<float>() : nullptr;
  table.first_moment = first_moment.as<float>();
  table.second_moment = second_moment.as<float>();
  table.main_grad = main_grad.data();
  const AdamWFactors factors =
      NarrowScalars(AdamWScalars{1e-3, 0.1, 0.9, 0.95, 1e-8, 0.1, 0.05, 1}, 1);
  CpuBackend()
      .InitializeDense(table, {Initializer::Kind::kUniform, 1, 0.1F}, true)
      .IgnoreError();
  EventReport report;
  for (auto _ : state) {
    CpuBackend()
        .ApplyAdamW(table, factors, NonFinitePolicy::kReject, report)
        .IgnoreError();
  }
  state.SetItemsProcessed(report.row_visits);
  SetBytesMoved(state, report.bytes_moved);
}
BENCHMARK(ApplyAdamW)
    ->ArgName("master")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace rowhouse::kernels
