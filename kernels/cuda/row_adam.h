#ifndef ROWHOUSE_KERNELS_CUDA_ROW_ADAM_H_
#define ROWHOUSE_KERNELS_CUDA_ROW_ADAM_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/runs.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cuda {

/// Where an event's rows stopped short; zeroed before.
struct RowAdamCounts {
  RunCounts runs;
  unsigned long long bad_mean_squares;    ///< Read no state.
  unsigned long long bad_second_moments;  ///< Read state, but no weights.
  unsigned long long bad_weights;         ///< Read all, wrote nothing.
};

/// One event on its way.
struct RowAdamLaunch {
  RowTable table;
  Entries entries;
  LongRuns long_runs;  ///< None where slots increase strictly.
  DType gradient_dtype = DType::kBf16;
  RowAdamFactors factors{};
  NonFinitePolicy policy = NonFinitePolicy::kReject;
  const float* beta2 = nullptr;       ///< Of `Beta2History`.
  const float* suffix_min = nullptr;  ///< Of `Beta2History`.
  int64_t event_count = 0;            ///< Of `Beta2History`.
  bool vector_rows = false;  ///< Gradients and weights: see columns.cuh.
  RowAdamCounts* counts = nullptr;

  /// One part whose slots increase strictly; `entries` then holds its slots
  /// alone.
  bool single_part = false;
  const void* part_rows = nullptr;

  /// Rows wider than kRegisterColumns: `RowAdamScratchFloats`.
  float* wide_rows = nullptr;
};

/// Rows up to so wide stay in registers from the first load to the last store.
inline constexpr int64_t kRegisterColumns = 1024;

/// fp32 elements of `wide_rows`: 0 up to kRegisterColumns.
int64_t RowAdamScratchFloats(int64_t dim);

/// `LaunchRowAdam` for rows wider than kRegisterColumns.
cudaError_t LaunchWideRowAdam(const RowAdamLaunch& launch, cudaStream_t stream);

/// Enqueues the event, unless `counts->runs.unordered` is set: per run,
/// run-sum, mean square, replay and update in one pass. A warp takes a row, of
/// wide ones a block.
///
/// Moves 2D an entry and 4D + 16 bytes a row at bf16; a sector of 32 bytes each
/// for the second moment and the last event of a row that has no neighbour.
cudaError_t LaunchRowAdam(const RowAdamLaunch& launch, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_ROW_ADAM_H_
