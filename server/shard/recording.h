#ifndef ROWHOUSE_SERVER_SHARD_RECORDING_H_
#define ROWHOUSE_SERVER_SHARD_RECORDING_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/mutex.h"
#include "server/shard/recorded_pieces.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Where a recording begins.
struct RecordingStart {
  int64_t event = 0;  ///< The last applied.
  /// What the bits of head parts depend on besides the parts.
  std::string arithmetic;
  std::vector<TrainerCountChange> trainer_counts;
  std::optional<ShardDigest> digest;
};

/// Applied events on their way from the lane to one caller, who takes them one
/// after another. It holds the parts of those that wait and of the one that the
/// caller is at, at most `buffer_bytes`: the lane never waits for the caller.
///
/// However it ends, what it holds is freed at once, its reservation too. Held
/// by both sides. Must not outlive the shard's backend.
///
/// Thread-safe.
class Recording {
 public:
  using Event = std::shared_ptr<const RecordedEvent>;

  Recording(const ShardSpec& spec, kernels::Backend& backend,
            RecordingRequest request, std::shared_ptr<Call> call,
            RecordingStart start)
      : spec_(spec),
        backend_(backend),
        request_(std::move(request)),
        call_(std::move(call)),
        start_(std::move(start)) {}

  // The caller's side.
  const RecordingStart& start() const { return start_; }
  int64_t buffer_bytes() const { return request_.buffer_bytes; }

  /// Its events' pieces, for the caller to go through.
  RecordedPieces Pieces(int64_t max_bytes, bool targets_only) const {
    return {spec_, backend_, max_bytes, targets_only};
  }

  /// Lets go of the event that the caller is at. `done` is called when the next
  /// one is there, maybe on the lane, and gets true; or false: `last_event`
  /// was the last. One at a time.
  ///
  /// Errors:
  ///   kResourceExhausted  RECORDER_BEHIND: an event did not fit any more.
  ///   kAborted            TABLE_REWRITTEN.
  ///   kCancelled          the caller has gone.
  ///   What the shard was closed with.
  void Next(Done<bool> done) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The event that the caller is at, to be held for a short time only; an
  /// error once the recording has ended.
  absl::StatusOr<Event> Current() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The lane's side; `End` also the caller's.
  /// Takes an event, or ends where that does not fit (RECORDER_BEHIND).
  void Add(Event event, int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WantsDigest(int64_t event) const {
    return request_.digest && request_.last_event == event;
  }
  void End(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const { return call_->cancelled; }
  int64_t held_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  /// Whether it takes no more events.
  bool finished() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Held {
    Event event;
    int64_t size_bytes = 0;
  };

  const ShardSpec& spec_;
  kernels::Backend& backend_;
  RecordingRequest request_;
  const std::shared_ptr<Call> call_;
  const RecordingStart start_;

  mutable Mutex mutex_;
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);
  bool at_front_ ABSL_GUARDED_BY(mutex_) = false;  // The caller is at it.
  int64_t held_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;  // `last_event` was added.
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  Done<bool> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<void> reservation_ ABSL_GUARDED_BY(mutex_) =
      std::move(request_.reservation);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_RECORDING_H_
