#include "server/shard/snapshot_chunks.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {

absl::StatusOr<std::optional<kernels::Buffer>> SnapshotChunks::Take(
    int64_t keep) {
  MutexLock lock(mutex_);
  if (static_cast<int64_t>(free_.size()) + left_ <= keep) return std::nullopt;
  if (!free_.empty()) {
    kernels::Buffer chunk = std::move(free_.back());
    free_.pop_back();
    return chunk;
  }
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer chunk,
                            backend_.AllocateHost(chunk_bytes_));
  --left_;
  return chunk;
}

void SnapshotChunks::Return(kernels::Buffer chunk) {
  MutexLock lock(mutex_);
  if (on_return_ == nullptr) return;
  free_.push_back(std::move(chunk));
  on_return_();
}

void SnapshotChunks::Close() {
  MutexLock lock(mutex_);
  on_return_ = nullptr;
  free_.clear();
}

}  // namespace rowhouse::server
