#include "bench/kernels/ceiling.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/cpu/memory.h"

namespace rowhouse::kernels {
namespace {

constexpr int64_t kBytes = int64_t{512} << 20;  // Beyond all caches.
constexpr int kCopies = 9;

void CopyOnThreads(const std::byte* from, std::byte* to, int64_t thread_count) {
  std::vector<std::jthread> threads;
  for (int64_t i = 0; i < thread_count; ++i) {
    const int64_t begin = kBytes * i / thread_count;
    const int64_t end = kBytes * (i + 1) / thread_count;
    threads.emplace_back([=] {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
  }
}

double MeasureMemcpyRate() {
  using Clock = std::chrono::steady_clock;
  const int64_t thread_count =
      std::max<int64_t>(1, std::thread::hardware_concurrency());
  const Buffer from = cpu::AllocateMemory(kBytes).value();
  const Buffer to = cpu::AllocateMemory(kBytes).value();
  // Pages that were never written would all be the one page of zeros.
  std::memset(from.data(), 1, static_cast<size_t>(kBytes));
  std::memset(to.data(), 1, static_cast<size_t>(kBytes));
  std::array<double, kCopies> seconds{};
  for (double& copy : seconds) {
    const Clock::time_point start = Clock::now();
    CopyOnThreads(from.as<std::byte>(), to.as<std::byte>(), thread_count);
    copy = std::chrono::duration<double>(Clock::now() - start).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return 2.0 * static_cast<double>(kBytes) / seconds[kCopies / 2];
}

// Stands among the results as what they are shares of.
void Memcpy(benchmark::State& state) {
  const double rate = MemcpyRate();
  for (auto _ : state) {
    state.SetIterationTime(2.0 * static_cast<double>(kBytes) / rate);
  }
  SetBytesMoved(state, state.iterations() * 2 * kBytes);
}
BENCHMARK(Memcpy)->Iterations(1)->UseManualTime()->Unit(
    benchmark::kMillisecond);

}  // namespace

double MemcpyRate() {
  static const double rate = MeasureMemcpyRate();
  return rate;
}

void SetBytesMoved(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(bytes);
  state.counters["of_memcpy"] = benchmark::Counter(
      static_cast<double>(bytes) / MemcpyRate(), benchmark::Counter::kIsRate);
}

}  // namespace rowhouse::kernels
