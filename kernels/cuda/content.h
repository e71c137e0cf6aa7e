#ifndef ROWHOUSE_KERNELS_CUDA_CONTENT_H_
#define ROWHOUSE_KERNELS_CUDA_CONTENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/hash.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cuda {

/// What a run of rows holds; zeroed before.
struct RunContent {
  ContentSum content;
  /// `~i` of the first element `i` (row * dim + column) that is not finite, or
  /// 0: none.
  unsigned long long inverse_of_first_bad;
};

/// Enqueues the content of `rows` (hash.h) and the finite check, in one pass
/// that reads each row once.
cudaError_t LaunchContent(const void* rows, int64_t row_count, int64_t dim,
                          DType dtype, int64_t first_position,
                          RunContent* content, cudaStream_t stream);

/// Enqueues `*sum +=` the sum of `RowDigest` over the table's rows, second
/// moments as of event `event_count`. Reads row_bytes + 8 a row.
cudaError_t LaunchDigest(const RowTable& table, const float* beta2,
                         const float* suffix_min, int64_t event_count,
                         uint64_t* sum, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_CONTENT_H_
