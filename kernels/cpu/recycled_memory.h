#ifndef ROWHOUSE_KERNELS_CPU_RECYCLED_MEMORY_H_
#define ROWHOUSE_KERNELS_CPU_RECYCLED_MEMORY_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/mutex.h"

namespace rowhouse::kernels::cpu {

/// Memory that is used again: the system clears pages when they are first
/// touched, which takes as long as filling them. With what is in use never more
/// is kept than was in use at once.
///
/// Thread-safe. Outlives its buffers.
class RecycledMemory {
 public:
  /// As `AllocateMemory`, but not zeroed.
  absl::StatusOr<Buffer> Allocate(int64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Gives what is kept back to the system, and forgets how much was in use.
  void Drop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static void Free(void* memory, void* data, int64_t size_bytes);
  void Keep(void* data) ABSL_LOCKS_EXCLUDED(mutex_);
  Buffer Hand(Buffer buffer, int64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  std::map<void*, Buffer> used_ ABSL_GUARDED_BY(mutex_);         // By address.
  std::multimap<int64_t, Buffer> kept_ ABSL_GUARDED_BY(mutex_);  // By size.
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t most_used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_RECYCLED_MEMORY_H_
