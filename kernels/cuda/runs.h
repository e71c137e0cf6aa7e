#ifndef ROWHOUSE_KERNELS_CUDA_RUNS_H_
#define ROWHOUSE_KERNELS_CUDA_RUNS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/entries.h"
#include "kernels/cuda/scratch.h"
#include "kernels/dtype.h"

namespace rowhouse::kernels::cuda {

/// Runs of at least so many entries of one slot are summed by blocks of their
/// own, the others by one warp. A warp sees at once whether a run is long, and
/// no two of them begin in the same kLongRun entries.
inline constexpr int kLongRun = 32;

struct RunCounts {
  unsigned long long runs;  ///< Distinct slots.
  unsigned long long long_runs;
  int32_t unordered;  ///< Set where there are no entries in order after all.
};

/// The long runs of some entries, on the device.
struct LongRuns {
  int64_t* heads = nullptr;  ///< Where they begin, in no order.
  float* sums = nullptr;     ///< [_, dim]: that of head `i` at `i / kLongRun`.
  const unsigned long long* count = nullptr;

  /// `count` is the caller's.
  static LongRuns Cut(ScratchCutter& cutter, int64_t entry_count, int64_t dim);
};

/// Enqueues the counting of runs into `counts`, zeroed before, and the listing
/// of long ones, unless `unordered`. Reads 8 bytes an entry.
cudaError_t LaunchFindRuns(const Entries& entries, const LongRuns& long_runs,
                           RunCounts* counts, cudaStream_t stream);

/// Enqueues the run-sums (arithmetic.h) of all long runs: a block sums chunks
/// of kRunChunk entries in its warps and adds them in order, 256 columns at a
/// time. Reads each gradient row once, writes 4 bytes a column of each run.
cudaError_t LaunchSumLongRuns(const Entries& entries, const LongRuns& long_runs,
                              DType dtype, int64_t dim, bool vector_rows,
                              cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_RUNS_H_
