#ifndef ROWHOUSE_SERVER_SHARD_LANE_H_
#define ROWHOUSE_SERVER_SHARD_LANE_H_

#include <cstdint>
#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// One thread that runs tasks one after another, in the order they were posted:
/// what orders all work on a shard.
///
/// Thread-safe.
class Lane {
 public:
  /// Called once: with OK on the lane's thread, or with the refusal, at once,
  /// on the thread that posts.
  using Task = absl::AnyInvocable<void(absl::Status)>;

  /// Takes up to `capacity` posted tasks that have not started.
  explicit Lane(int32_t capacity);

  /// Stops.
  ~Lane();

  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Runs `task` after all earlier ones.
  ///
  /// Errors, given to `task`:
  ///   kResourceExhausted  LANE_FULL, with a retry delay.
  void Post(Task task) ABSL_LOCKS_EXCLUDED(mutex_);

  /// As `Post`, for work of calls that were admitted before and so are bounded
  /// already: never refused. A lane that has stopped drops it.
  void PostInternal(absl::AnyInvocable<void()> task)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int32_t capacity() const { return capacity_; }

  /// Posted tasks that have not started.
  int32_t WaitingCount() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Runs what has been posted, then ends the thread. Later posts are refused
  /// UNAVAILABLE. Not called on the lane's thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    Task task;
    bool counted = false;  // Against the capacity.
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Admit(Task& task) ABSL_LOCKS_EXCLUDED(mutex_);

  const int32_t capacity_;
  mutable Mutex mutex_;
  CondVar posted_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  int32_t counted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: runs on the members above.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_LANE_H_
