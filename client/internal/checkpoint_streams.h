#ifndef ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_STREAMS_H_
#define ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_STREAMS_H_

#include <cstdint>
#include <deque>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/internal/checkpoint_channel.h"
#include "client/internal/cluster_core.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::client::internal {

/// Long calls to servers that go on at once, each made once. When one fails the
/// others are cancelled.
///
/// Thread-compatible.
class CheckpointStreams {
 public:
  using Call = absl::AnyInvocable<absl::Status(CheckpointChannel&, ProgressSink,
                                               const CallContext&)>;

  /// `cluster` must outlive it.
  explicit CheckpointStreams(ClusterCore& cluster);
  /// Cancels what goes on, and waits for its end.
  ~CheckpointStreams();
  CheckpointStreams(const CheckpointStreams&) = delete;
  CheckpointStreams& operator=(const CheckpointStreams&) = delete;

  void Start(int32_t server, Call call);

  /// Waits until each call has told how far it is or has ended OK. The result
  /// is the first fault, if any: then all have ended.
  absl::Status AwaitBegun(absl::Time deadline);

  /// Waits for the end of all. The result is the first fault, if any.
  absl::Status Await(const CheckpointWatcher& watcher, absl::Time deadline);

  /// Cancels what goes on, and waits for its end.
  void Cancel();

  CheckpointProgress progress() const;

  /// Whether some call has told how far it is.
  bool any_begun() const;

 private:
  struct Stream {
    CheckpointProgress progress;
    bool begun = false;
    bool ended = false;
  };

  void Run(int32_t server, Call call, Stream& stream);
  // Keeps the first fault and cancels all.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // The result is the first fault.
  absl::Status AwaitEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  bool AllBegun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  CheckpointProgress Sum() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for a change, or not so long; false: the deadline is past.
  bool WaitUntil(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ClusterCore& cluster_;
  Cancellation cancellation_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Stream> streams_ ABSL_GUARDED_BY(mutex_);  // At fixed places.
  int64_t running_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t change_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_STREAMS_H_
