#ifndef ROWHOUSE_SERVER_SHARD_SNAPSHOT_CHUNKS_H_
#define ROWHOUSE_SERVER_SHARD_SNAPSHOT_CHUNKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// Host memory for the pieces of a snapshot, in chunks of one size, each of
/// which holds the rows of a block. A chunk is allocated when it is first
/// needed.
///
/// Thread-safe. Must not outlive its backend.
class SnapshotChunks {
 public:
  /// Called, on any thread, when a chunk has come back; must be quick.
  using OnReturn = absl::AnyInvocable<void()>;

  SnapshotChunks(kernels::Backend& backend, int64_t chunk_bytes,
                 int64_t max_count, OnReturn on_return)
      : backend_(backend),
        chunk_bytes_(chunk_bytes),
        left_(max_count),
        on_return_(std::move(on_return)) {}

  /// A chunk, or none where fewer than `keep` others would be left.
  ///
  /// Errors: the backend's, for want of memory.
  absl::StatusOr<std::optional<kernels::Buffer>> Take(int64_t keep = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Return(kernels::Buffer chunk) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Chunks that come back are freed from now on, and nobody is told.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  kernels::Backend& backend_;
  const int64_t chunk_bytes_;
  Mutex mutex_;
  int64_t left_ ABSL_GUARDED_BY(mutex_);  // To be allocated.
  std::vector<kernels::Buffer> free_ ABSL_GUARDED_BY(mutex_);
  OnReturn on_return_ ABSL_GUARDED_BY(mutex_);  // Null when closed.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_SNAPSHOT_CHUNKS_H_
