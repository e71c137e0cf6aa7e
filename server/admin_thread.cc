#include "server/admin_thread.h"

#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace rowhouse::server {

AdminThread::AdminThread() : thread_([this] { Run(); }) {}

AdminThread::~AdminThread() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void AdminThread::Post(absl::AnyInvocable<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.SignalAll();
}

void AdminThread::Run() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace rowhouse::server
