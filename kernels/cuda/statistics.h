#ifndef ROWHOUSE_KERNELS_CUDA_STATISTICS_H_
#define ROWHOUSE_KERNELS_CUDA_STATISTICS_H_

#include <cuda_runtime_api.h>

#include "kernels/cuda/runs.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cuda {

/// Enqueues the statistics of each run's sum into `statistics`, zeroed before:
/// a warp takes a run. Reads each gradient row once.
cudaError_t LaunchMergedStatistics(const Entries& entries,
                                   const LongRuns& long_runs, DType dtype,
                                   int64_t dim, bool vector_rows,
                                   GradientStatistics* statistics,
                                   cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_STATISTICS_H_
