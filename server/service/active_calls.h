#ifndef ROWHOUSE_SERVER_SERVICE_ACTIVE_CALLS_H_
#define ROWHOUSE_SERVER_SERVICE_ACTIVE_CALLS_H_

#include <cstdint>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "kernels/mutex.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

class ActiveCall;

/// The calls under way on a server: what a drain lets finish, and what it ends.
///
/// Thread-safe.
class ActiveCalls {
 public:
  /// From now on new calls are refused, and calls that wait for an event end:
  /// UNAVAILABLE (DRAINING) both. Others go on.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);

  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Calls under way, and those among them that wait for an event.
  int64_t active_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t waiting_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Waits until no call is under way, or until `deadline` of the system's
  /// clock. Returns the count of calls still under way.
  int64_t WaitUntilIdle(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ActiveCall;

  mutable Mutex mutex_;
  CondVar idle_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<ActiveCall*> waiting_ ABSL_GUARDED_BY(mutex_);
};

/// One call under way, from its first reaction to its last. Part of the call's
/// reactor.
///
/// Thread-compatible, but for `Cancel`, which may come at any time.
class ActiveCall {
 public:
  ActiveCall(ActiveCalls& calls, const grpc::CallbackServerContext& context);
  ~ActiveCall();
  ActiveCall(const ActiveCall&) = delete;
  ActiveCall& operator=(const ActiveCall&) = delete;

  /// OK, or UNAVAILABLE (DRAINING) when it began too late.
  absl::Status admission() const;

  /// What the shard is told about the caller.
  const std::shared_ptr<Call>& call() const { return call_; }

  /// Keeps `shard` until the end of the call, or lets go of it with null.
  void Attach(std::shared_ptr<Shard> shard);

  /// Empty before `Attach`.
  const std::shared_ptr<Shard>& shard() const { return shard_; }

  /// Between these two the call is only waiting: a drain ends it.
  void BeginWait();
  void EndWait();

  /// The caller has gone: tells the shard.
  void Cancel();

  /// `status` as the caller should see it: DRAINING where the drain ended it.
  /// Logs faults of the server.
  absl::Status Outcome(absl::Status status) const;

 private:
  friend class ActiveCalls;

  ActiveCalls& calls_;
  const bool admitted_;
  const std::shared_ptr<Call> call_ = std::make_shared<Call>();
  // Written under the mutex of `calls_`, by the call's own reactions only.
  std::shared_ptr<Shard> shard_;
};

/// UNAVAILABLE (DRAINING).
absl::Status DrainingError();

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_ACTIVE_CALLS_H_
