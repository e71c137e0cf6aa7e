#ifndef ROWHOUSE_KERNELS_CPU_SCRATCH_H_
#define ROWHOUSE_KERNELS_CPU_SCRATCH_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/cpu/executor.h"
#include "kernels/mutex.h"

namespace rowhouse::kernels::cpu {

/// Scratch memory that outlives the calls that borrow it: the system gives
/// pages once, not for every call. Holds as many buffers as were ever borrowed
/// at once, each as large as the largest it was borrowed for.
///
/// Thread-safe.
class ScratchPool {
 public:
  /// A buffer of at least `size_bytes`, not initialized; give it back.
  ///
  /// Errors:
  ///   kResourceExhausted  there is too little memory; names the bytes.
  absl::StatusOr<Buffer> Borrow(int64_t size_bytes);
  void Return(Buffer buffer);

 private:
  Mutex mutex_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mutex_);
};

/// Calls `body(block, scratch)` for each `block < block_count`, on several
/// threads at once; `scratch` are `scratch_floats` fp32 elements that no other
/// running body has, not initialized. All scratch is borrowed first: where that
/// fails no body runs.
///
/// Errors:
///   kResourceExhausted  there is too little memory; names the bytes.
absl::Status ForEachBlock(
    Executor& executor, ScratchPool& pool, int64_t block_count,
    int64_t scratch_floats,
    absl::FunctionRef<void(int64_t block, float* scratch)> body);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_SCRATCH_H_
