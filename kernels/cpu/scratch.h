#ifndef ROWHOUSE_KERNELS_CPU_SCRATCH_H_
#define ROWHOUSE_KERNELS_CPU_SCRATCH_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/buffer.h"
#include "kernels/cpu/executor.h"
#include "kernels/mutex.h"

namespace rowhouse::kernels::cpu {

/// Calls `body(block, scratch)` for each `block < block_count`, on several
/// threads at once; `scratch` are `scratch_floats` fp32 elements that no other
/// running body has, not initialized. All scratch is allocated first: where
/// that fails no body runs.
///
/// Errors:
///   kResourceExhausted  there is too little memory; names the bytes.
absl::Status ForEachBlock(
    Executor& executor, int64_t block_count, int64_t scratch_floats,
    absl::FunctionRef<void(int64_t block, float* scratch)> body);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_SCRATCH_H_
