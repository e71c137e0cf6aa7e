#ifndef ROWHOUSE_SERVER_ADMIN_THREAD_H_
#define ROWHOUSE_SERVER_ADMIN_THREAD_H_

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// One thread for slow work: making and freeing tables. Runs tasks one after
/// another, in the order they were posted.
///
/// Thread-safe.
class AdminThread {
 public:
  AdminThread();

  /// Runs what has been posted, then ends the thread.
  ~AdminThread();

  AdminThread(const AdminThread&) = delete;
  AdminThread& operator=(const AdminThread&) = delete;

  void Post(absl::AnyInvocable<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: runs on the members above.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_ADMIN_THREAD_H_
