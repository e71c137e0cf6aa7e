#ifndef ROWHOUSE_SERVER_SHARD_CLASS_WEIGHTS_H_
#define ROWHOUSE_SERVER_SHARD_CLASS_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/hash.h"
#include "kernels/mutex.h"

namespace rowhouse::server {

/// Class weights of a shard's rows, fp32 in backend memory. Immutable.
struct ClassWeights {
  kernels::Buffer memory;
  int64_t row_count = 0;
  float largest = 0.0F;
  kernels::ContentSum content;

  const float* values() const { return memory.as<float>(); }
};

/// Class weights that count as held while any copy of this lives. Whoever has
/// `set` alone, as a recording, holds up nobody.
struct HeldClassWeights {
  std::shared_ptr<const ClassWeights> set;
};

/// The class weights that calls and parts of a shard hold: equal ones once, so
/// that every micro-batch may send them. Must not outlive its backend.
///
/// Thread-safe.
class ClassWeightSets {
 public:
  /// That differ, at a time; a shard reserves memory for them.
  static constexpr int64_t kMost = 8;

  explicit ClassWeightSets(kernels::Backend& backend) : backend_(backend) {}

  /// Errors:
  ///   kResourceExhausted  CLASS_WEIGHTS_FULL, with a retry delay.
  ///   or the backend's, for want of memory.
  absl::StatusOr<std::shared_ptr<const HeldClassWeights>> Hold(
      std::span<const float> values) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  kernels::Backend& backend_;
  Mutex mutex_;
  std::vector<std::weak_ptr<const HeldClassWeights>> held_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_CLASS_WEIGHTS_H_
