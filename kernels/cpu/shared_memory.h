#ifndef ROWHOUSE_KERNELS_CPU_SHARED_MEMORY_H_
#define ROWHOUSE_KERNELS_CPU_SHARED_MEMORY_H_

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/mutex.h"
#include "kernels/shared_memory.h"

namespace rowhouse::kernels::cpu {

/// The shared memory of one backend: memory files without a name in any file
/// system, so that nothing is left of a process that was killed. Others reach
/// them through the process that has them open, which the system allows to the
/// same user.
///
/// Thread-safe. Outlives its buffers.
class SharedMemoryFiles {
 public:
  /// Zeroed memory whose pages come when first touched.
  ///
  /// Errors:
  ///   kResourceExhausted  the system refused; names the bytes.
  absl::StatusOr<Buffer> Allocate(int64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// See `Backend::Share`.
  absl::StatusOr<SharedMemory> Name(const Buffer& buffer) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static void Free(void* files, void* data, int64_t size_bytes);

  mutable Mutex mutex_;
  std::map<const void*, int> files_ ABSL_GUARDED_BY(mutex_);  // By address.
};

/// See `Backend::Map`.
absl::StatusOr<Buffer> MapSharedMemory(const SharedMemory& memory,
                                       MapAccess access);

/// See `Backend::StoreEpoch` and `Backend::LoadEpoch`.
void StoreEpoch(int64_t* epoch, int64_t value);
int64_t LoadEpoch(const int64_t* epoch);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_SHARED_MEMORY_H_
