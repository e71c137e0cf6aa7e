#ifndef ROWHOUSE_SERVER_SHARD_ROW_EPOCH_H_
#define ROWHOUSE_SERVER_SHARD_ROW_EPOCH_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"

namespace rowhouse::server {

/// The word of shared memory by which readers of a shard's weights learn that
/// these may have changed.
///
/// Thread-compatible, the lane's. Must not outlive its backend.
class RowEpoch {
 public:
  /// Errors: the backend's.
  static absl::StatusOr<std::unique_ptr<RowEpoch>> Create(
      kernels::Backend& backend);

  /// What the word holds for those who read the rows as they are.
  int64_t value() const { return value_; }

  /// Gives the word a value it never had, before anything that later calls of
  /// the backend by this thread write.
  absl::Status Advance();

  const kernels::Buffer& word() const { return word_; }

 private:
  RowEpoch(kernels::Backend& backend, kernels::Buffer word)
      : backend_(backend), word_(std::move(word)) {}

  kernels::Backend& backend_;
  const kernels::Buffer word_;
  int64_t value_ = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_ROW_EPOCH_H_
