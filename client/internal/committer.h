#ifndef ROWHOUSE_CLIENT_INTERNAL_COMMITTER_H_
#define ROWHOUSE_CLIENT_INTERNAL_COMMITTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "client/internal/router.h"
#include "client/internal/session.h"
#include "kernels/mutex.h"
#include "rowhouse/trainer.h"

namespace rowhouse::client::internal {

/// Commits the events of a table for rank 0, one after the other, from a thread
/// of its own.
///
/// Waits until every shard has all ranks sealed, with the same session of each
/// rank on every shard; asks for the statistics where the decision needs them;
/// commits on every shard. Event e + 1 begins only after every shard recorded
/// e. A commit that some shard has recorded already is repeated as it is.
///
/// Faults of servers that are away are waited out. Any other fault halts the
/// committer until its event is decided again.
///
/// Thread-safe.
class Committer {
 public:
  /// `router` must outlive it.
  Committer(const Router& router, TrainerSession trainer, int64_t next_event);
  ~Committer();

  /// The first event without a decision.
  int64_t next_event() const;

  /// Takes the decision for `next_event()`, or for the event that halted.
  ///
  /// Errors:
  ///   kFailedPrecondition  another event; or the fault that halted.
  ///   kInvalidArgument     BAD_COMMIT: scalars of the other kind of table.
  absl::Status Decide(int64_t event, CommitDecision decision);

  /// The fault that halted it, or OK.
  absl::Status status() const;

  /// Cancelled when it halts. A new one after each restart.
  std::shared_ptr<Cancellation> halted() const;

 private:
  struct Task {
    int64_t event = 0;
    CommitDecision decision;
  };

  void Run();
  absl::Status CommitTask(const Task& task);
  /// Sets `recorded` when some shard has a commit of the event. Nothing: that,
  /// or the sessions differ between shards.
  absl::StatusOr<std::optional<std::vector<int64_t>>> WaitForSeals(
      int64_t event, std::optional<EventCommit>& recorded);
  absl::StatusOr<EventUpdate> Decision(const Task& task);
  absl::StatusOr<GradientStatistics> ReadStatistics(int64_t event);
  absl::Status CommitEverywhere(int64_t event, const EventCommit& commit);
  absl::Status CallShard(
      int32_t shard,
      absl::FunctionRef<absl::Status(ShardChannel&, const CallContext&)> call);
  absl::Status CallShards(absl::FunctionRef<absl::Status(int32_t, ShardChannel&,
                                                         const CallContext&)>
                              call);

  const Router& router_;
  const TrainerSession trainer_;
  Cancellation stop_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t next_event_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Cancellation> halted_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Last: it uses the rest.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_COMMITTER_H_
