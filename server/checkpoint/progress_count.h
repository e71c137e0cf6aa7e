#ifndef ROWHOUSE_SERVER_CHECKPOINT_PROGRESS_COUNT_H_
#define ROWHOUSE_SERVER_CHECKPOINT_PROGRESS_COUNT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/checkpoint/checkpoint_directory.h"

namespace rowhouse::server {

/// Counts the bytes of a long call. Thread-compatible.
class ProgressCount {
 public:
  ProgressCount(int64_t total_bytes, FileProgress progress)
      : total_bytes_(total_bytes), progress_(progress) {}

  /// Errors:
  ///   kCancelled  `progress` said so.
  absl::Status Add(int64_t bytes) {
    done_bytes_ += bytes;
    if (progress_(done_bytes_, total_bytes_)) return absl::OkStatus();
    return absl::CancelledError("the call was cancelled");
  }

 private:
  const int64_t total_bytes_;
  const FileProgress progress_;
  int64_t done_bytes_ = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_PROGRESS_COUNT_H_
