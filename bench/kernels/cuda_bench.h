#ifndef ROWHOUSE_BENCH_KERNELS_CUDA_BENCH_H_
#define ROWHOUSE_BENCH_KERNELS_CUDA_BENCH_H_

/// What benchmarks of the CUDA backend share: its memory, and times as ratios
/// to a copy of the bytes that an operation must move.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/support/check.h"
#include "bench/support/run.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {

inline constexpr int kCallsAtOnce = 8;

using ::rowhouse::bench::Check;

inline Backend& Cuda() {
  if (bench::TheRun().backend.kind != BackendKind::kCuda) {
    Check(absl::FailedPreconditionError("Cuda* cases need --backend=cuda"));
  }
  return bench::TheBackend();
}

inline Buffer Allocate(int64_t size_bytes) {
  return Check(Cuda().Allocate(size_bytes));
}

template <typename T>
Buffer Upload(const std::vector<T>& values) {
  const auto size = static_cast<int64_t>(values.size() * sizeof(T));
  Buffer buffer = Allocate(size);
  Check(Cuda().Copy(values.data(), buffer.data(), size));
  Check(Cuda().Synchronize());
  return buffer;
}

template <typename Call>
double SecondsPerCall(Call call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCallsAtOnce; ++i) call();
  Check(Cuda().Synchronize());
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  return taken.count() / kCallsAtOnce;
}

/// Bytes read and written a second by a copy within the device, the median.
inline double CopyRate() {
  static const double rate = [] {
    constexpr int64_t kBytes = int64_t{2} << 30;
    const Buffer from = Allocate(kBytes);
    const Buffer to = Allocate(kBytes);
    std::vector<double> seconds;
    for (int i = 0; i < 11; ++i) {
      seconds.push_back(SecondsPerCall(
          [&] { Check(Cuda().Copy(from.data(), to.data(), kBytes)); }));
    }
    std::nth_element(seconds.begin(), seconds.begin() + 5, seconds.end());
    return 2.0 * static_cast<double>(kBytes) / seconds[5];
  }();
  return rate;
}

/// Times batches of `call`; `floor_bytes` are those it must read and write.
template <typename Call>
void Time(benchmark::State& state, int64_t floor_bytes, Call call) {
  const double floor = static_cast<double>(floor_bytes) / CopyRate();
  double sum = 0;
  for (auto _ : state) {
    const double seconds = SecondsPerCall(call);
    state.SetIterationTime(seconds);
    sum += seconds;
  }
  state.counters["floor_ms"] = floor * 1e3;
  state.counters["ratio"] =
      sum / static_cast<double>(state.iterations()) / floor;
  state.counters["copy_TB/s"] = CopyRate() / 1e12;
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_BENCH_KERNELS_CUDA_BENCH_H_
