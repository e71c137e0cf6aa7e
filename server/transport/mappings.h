#ifndef ROWHOUSE_SERVER_TRANSPORT_MAPPINGS_H_
#define ROWHOUSE_SERVER_TRANSPORT_MAPPINGS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/mutex.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// One client's mapping of a shard. As long as it lives, so does the shard's
/// memory.
struct Mapping {
  /// Gives a call the inbox, and the staging, to itself.
  ///
  /// Errors:
  ///   kAborted  BUSY: another call has it.
  absl::Status Take();
  void Give() { taken = false; }

  std::shared_ptr<Shard> shard;
  std::shared_ptr<void> reservation;  ///< Of the memory below.
  kernels::Buffer inbox;              ///< Shared; empty without one.
  kernels::Buffer staging;  ///< Where pieces of the inbox are copied to.
  std::atomic<bool> taken = false;
};

/// The mappings of a server, by number. What looks one up keeps it.
///
/// Thread-safe.
class Mappings {
 public:
  /// Returns the number: random, for a client must not take another's by
  /// mistake.
  int64_t Add(std::shared_ptr<Mapping> mapping) ABSL_LOCKS_EXCLUDED(mutex_);

  void Remove(int64_t number) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Errors:
  ///   kFailedPrecondition  MAPPING_GONE.
  absl::StatusOr<std::shared_ptr<Mapping>> Find(int64_t number) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<int64_t, std::shared_ptr<Mapping>> mappings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_MAPPINGS_H_
