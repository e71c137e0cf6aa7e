#include "client/internal/worker_pool.h"

#include <utility>

namespace rowhouse::client::internal {

WorkerPool::~WorkerPool() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    threads = std::move(threads_);
    changed_.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
}

void WorkerPool::Schedule(absl::AnyInvocable<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  // Idle threads that a queued task has already claimed are not free.
  if (static_cast<int64_t>(tasks_.size()) > idle_count_) {
    threads_.emplace_back([this] { Work(); });
  }
  changed_.SignalOne();
}

void WorkerPool::Work() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      MutexLock lock(mutex_);
      ++idle_count_;
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      --idle_count_;
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

absl::Status WorkerPool::FanOut(int32_t count,
                                absl::FunctionRef<absl::Status(int32_t)> body) {
  if (count == 0) return absl::OkStatus();
  std::vector<absl::Status> results(count);
  Mutex mutex;
  CondVar changed;
  int32_t running = count - 1;
  for (int32_t i = 0; i + 1 < count; ++i) {
    Schedule([&, i] {
      results[i] = body(i);
      MutexLock lock(mutex);
      --running;
      changed.SignalOne();
    });
  }
  results[count - 1] = body(count - 1);
  {
    MutexLock lock(mutex);
    while (running > 0) changed.Wait(mutex);
  }
  for (absl::Status& result : results) {
    if (!result.ok()) return std::move(result);
  }
  return absl::OkStatus();
}

int64_t WorkerPool::thread_count() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(threads_.size());
}

}  // namespace rowhouse::client::internal
