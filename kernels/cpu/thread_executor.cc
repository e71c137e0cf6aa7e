#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/executor.h"

namespace rowhouse::kernels::cpu {
namespace {

class ThreadExecutor final : public Executor {
 public:
  ThreadExecutor(int thread_count, CpuIsa isa)
      : Executor(isa),
        concurrency_(
            thread_count > 0
                ? thread_count
                : std::max(1, static_cast<int>(
                                  std::thread::hardware_concurrency()))) {}

  void ParallelFor(int64_t count, int64_t grain,
                   absl::FunctionRef<void(int64_t, int64_t)> body) override {
    const Blocks blocks = Blocks::Of(count, grain, concurrency_);
    if (blocks.count == 0) return;
    if (blocks.count == 1 || concurrency_ == 1) {
      body(0, count);
      return;
    }
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
      for (int64_t block = next++; block < blocks.count; block = next++) {
        const int64_t begin = block * blocks.size;
        body(begin, std::min(count, begin + blocks.size));
      }
    };
    std::vector<std::thread> helpers;
    const int64_t helper_count =
        std::min<int64_t>(concurrency_, blocks.count) - 1;
    helpers.reserve(static_cast<size_t>(helper_count));
    for (int64_t i = 0; i < helper_count; ++i) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
  }

  int concurrency() const override { return concurrency_; }

 private:
  const int concurrency_;
};

}  // namespace

std::unique_ptr<Executor> MakeThreadExecutor(int thread_count, CpuIsa isa) {
  return std::make_unique<ThreadExecutor>(thread_count, isa);
}

}  // namespace rowhouse::kernels::cpu
