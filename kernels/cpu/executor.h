#ifndef ROWHOUSE_KERNELS_CPU_EXECUTOR_H_
#define ROWHOUSE_KERNELS_CPU_EXECUTOR_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "kernels/cpu_isa.h"

namespace rowhouse::kernels::cpu {

/// Runs loops on threads. The CPU backend writes every loop so that its result
/// does not depend on how an executor cuts it, nor on its instructions.
///
/// Thread-safe.
class Executor {
 public:
  explicit Executor(CpuIsa isa) : isa_(isa) {}
  virtual ~Executor() = default;

  /// Calls `body(begin, end)` for disjoint ranges that cover `[0, count)`, at
  /// least `grain` long but for the last, and returns when all are done. Bodies
  /// may run at once on several threads. Never called from within a body.
  virtual void ParallelFor(
      int64_t count, int64_t grain,
      absl::FunctionRef<void(int64_t begin, int64_t end)> body) = 0;

  /// Most bodies that run at once.
  virtual int concurrency() const = 0;

  /// What bodies are compiled for (compile_for.h).
  CpuIsa isa() const { return isa_; }

 private:
  const CpuIsa isa_;
};

/// oneTBB in an arena of its own. `thread_count` 0: one per core.
///
/// REQUIRES: `HasCpuIsa(isa)`, here and below.
std::unique_ptr<Executor> MakeTbbExecutor(int thread_count, CpuIsa isa);

/// Plain std::threads, started per loop: for builds without oneTBB (the
/// thread sanitizer's, whose reports Debian's oneTBB would spoil).
std::unique_ptr<Executor> MakeThreadExecutor(int thread_count,
                                             CpuIsa isa = BestCpuIsa());

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_EXECUTOR_H_
