#ifndef ROWHOUSE_SERVER_CHECKPOINT_WORK_H_
#define ROWHOUSE_SERVER_CHECKPOINT_WORK_H_

#include <cstdint>

#include "absl/time/time.h"

namespace rowhouse::server {

/// How far a long piece of work is.
struct CheckpointProgress {
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;  ///< 0 until it is known.
  int64_t before_image_row_count = 0;
  absl::Duration event_wait;  ///< Of commits, for room.
};

/// Work on checkpoints that goes on beside its caller, on threads of its own,
/// and tells a callback when it is through: once, last.
///
/// Thread-safe.
class CheckpointWork {
 public:
  /// Cancels and waits for its end. Not called on its threads.
  virtual ~CheckpointWork() = default;

  /// It ends soon, kCancelled, unless it is through.
  virtual void Cancel() = 0;

  virtual CheckpointProgress progress() const = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_WORK_H_
