#ifndef ROWHOUSE_KERNELS_MEMORY_POOL_H_
#define ROWHOUSE_KERNELS_MEMORY_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/mutex.h"

namespace rowhouse::kernels {

/// Cuts buffers from memory that was set aside: the smallest free piece that
/// will do. What finds no room there comes from the source itself.
///
/// Only addresses are touched, so the memory may be a device's. Thread-safe.
class MemoryPool {
 public:
  /// Gives memory aligned to 256 bytes; called by one thread at a time when
  /// setting aside, and by any when buffers find no room.
  using Source = std::function<absl::StatusOr<Buffer>(int64_t size_bytes)>;

  explicit MemoryPool(Source source) : source_(std::move(source)) {}

  /// REQUIRES: its buffers have been freed.
  ~MemoryPool() = default;

  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// Takes `size_bytes` more from the source, and a little for what aligning
  /// loses; less where blocks that could not be given back have room for it, or
  /// for some of it and the source has no more. Errors: the source's; nothing
  /// has changed then.
  absl::Status SetAside(int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Gives memory back to the source, as soon as whole blocks of it are free
  /// and not needed for the rest that was set aside.
  void GiveBack(int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Where a buffer of `Allocate` lies within the allocation of the source that
  /// it was cut from; 0 where it is one itself.
  int64_t OffsetOf(const Buffer& buffer) const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Memory aligned to 256 bytes, not initialized. Errors: the source's.
  absl::StatusOr<Buffer> Allocate(int64_t size_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // One allocation of the source, and its free pieces: sizes by offset.
  struct Block {
    Buffer memory;
    std::map<int64_t, int64_t> free;

    bool unused() const {
      return free.size() == 1 && free.begin()->second == memory.size_bytes();
    }
  };
  using Blocks = std::map<std::byte*, Block>;

  static void Free(void* pool, void* data, int64_t size_bytes);
  void Insert(std::byte* data, int64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Source source_;
  mutable Mutex mutex_;
  Blocks blocks_ ABSL_GUARDED_BY(mutex_);
  int64_t aside_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // What was asked for.
  int64_t block_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // What was taken.
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_MEMORY_POOL_H_
