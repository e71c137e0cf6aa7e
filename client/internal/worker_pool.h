#ifndef ROWHOUSE_CLIENT_INTERNAL_WORKER_POOL_H_
#define ROWHOUSE_CLIENT_INTERNAL_WORKER_POOL_H_

#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// Threads for blocking calls: a task never waits for another one's thread. As
/// many threads as tasks ever ran at once; they are kept.
///
/// Thread-safe. The destructor runs what was scheduled and waits for it.
class WorkerPool {
 public:
  WorkerPool() = default;
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Schedule(absl::AnyInvocable<void()> task);

  /// Calls `body(i)` for i in [0, count) at once, the last one on the caller's
  /// thread, and returns when all have. The result is the fault of the lowest
  /// i, if any.
  absl::Status FanOut(int32_t count,
                      absl::FunctionRef<absl::Status(int32_t)> body);

  int64_t thread_count() const;

 private:
  void Work();

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t idle_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_WORKER_POOL_H_
