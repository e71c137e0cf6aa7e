#ifndef ROWHOUSE_KERNELS_CUDA_ROWS_H_
#define ROWHOUSE_KERNELS_CUDA_ROWS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/row_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues `out[positions[i], :] = table[slots[i], :]` for `i < count`; null
/// slots or positions are `i` each. Moves 2 * count * row_bytes.
cudaError_t LaunchGatherRows(const RowTable& table, const int64_t* slots,
                             int64_t count, void* out, cudaStream_t stream,
                             const int64_t* positions = nullptr);

/// Enqueues the initial values UNIFORM(seed, bound) (hash.h) of all weights.
/// Writes row_count * row_bytes.
cudaError_t LaunchFillUniform(const RowTable& table, uint64_t seed, float bound,
                              cudaStream_t stream);

/// Enqueues the replay of `slots` up to event `event_count`. Reads and writes 8
/// bytes of state a slot.
cudaError_t LaunchBringCurrent(const RowTable& table, const float* beta2,
                               const float* suffix_min, int64_t event_count,
                               const int64_t* slots, int64_t count,
                               cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_ROWS_H_
