#ifndef ROWHOUSE_SERVER_SHARD_BETA2_HISTORY_H_
#define ROWHOUSE_SERVER_SHARD_BETA2_HISTORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rowhouse::server {

/// beta2 of every applied event and the suffix minima that let a replay stop
/// early (kernels/arithmetic.h), on the host and in the backend's memory.
///
/// Thread-compatible. Must not outlive its backend.
class Beta2History {
 public:
  /// No events.
  static absl::StatusOr<Beta2History> Create(kernels::Backend& backend);

  /// Adds the next event. A skipped event has 1. Appending costs as much as
  /// the minima that change: a step while beta2 does not decrease.
  ///
  /// Errors: the backend's; the history is then not to be used any more.
  absl::Status Append(float beta2);

  int64_t event_count() const {
    return static_cast<int64_t>(beta2_.size()) - 1;
  }

  /// For the backend; valid until the next `Append`.
  kernels::Beta2History view() const;

  /// Share of the history in the table's digest.
  uint64_t Digest() const;

  /// Host copies; index 0 is unused.
  const std::vector<float>& beta2() const { return beta2_; }
  const std::vector<float>& suffix_min() const { return suffix_min_; }

 private:
  explicit Beta2History(kernels::Backend& backend) : backend_(&backend) {}

  // Copies entries from `first` on to the backend.
  absl::Status Upload(int64_t first);
  absl::Status Grow();

  kernels::Backend* backend_;
  std::vector<float> beta2_ = {1.0F};
  std::vector<float> suffix_min_ = {1.0F};
  int64_t capacity_ = 0;
  kernels::Buffer device_beta2_;
  kernels::Buffer device_suffix_min_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_BETA2_HISTORY_H_
