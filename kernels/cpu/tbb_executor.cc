#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/executor.h"

namespace rowhouse::kernels::cpu {
namespace {

class TbbExecutor final : public Executor {
 public:
  TbbExecutor(int thread_count, CpuIsa isa)
      : Executor(isa),
        arena_(thread_count > 0 ? thread_count
                                : oneapi::tbb::task_arena::automatic),
        concurrency_(arena_.max_concurrency()) {}

  void ParallelFor(int64_t count, int64_t grain,
                   absl::FunctionRef<void(int64_t, int64_t)> body) override {
    const Blocks blocks = Blocks::Of(count, grain, concurrency_);
    if (blocks.count == 0) return;
    if (blocks.count == 1 || concurrency_ == 1) {
      body(0, count);
      return;
    }
    arena_.execute([&] {
      oneapi::tbb::parallel_for(int64_t{0}, blocks.count, [&](int64_t block) {
        const int64_t begin = block * blocks.size;
        body(begin, std::min(count, begin + blocks.size));
      });
    });
  }

  int concurrency() const override { return concurrency_; }

 private:
  oneapi::tbb::task_arena arena_;
  const int concurrency_;
};

}  // namespace

std::unique_ptr<Executor> MakeTbbExecutor(int thread_count, CpuIsa isa) {
  return std::make_unique<TbbExecutor>(thread_count, isa);
}

}  // namespace rowhouse::kernels::cpu
