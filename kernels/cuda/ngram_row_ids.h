#ifndef ROWHOUSE_KERNELS_CUDA_NGRAM_ROW_IDS_H_
#define ROWHOUSE_KERNELS_CUDA_NGRAM_ROW_IDS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

namespace rowhouse::kernels::cuda {

/// Enqueues `Backend::NgramRowIds`.
cudaError_t LaunchNgramRowIds(std::span<const int32_t> tokens,
                              int64_t table_row_count,
                              std::span<int64_t> row_ids, cudaStream_t stream);

/// Enqueues `Backend::FindSlots`. Where an id is missing, `*inverse_of_first`
/// becomes the complement of the least position; it was 0 before.
cudaError_t LaunchFindSlots(std::span<const int64_t> want,
                            std::span<const int64_t> row_ids,
                            std::span<int64_t> slots,
                            unsigned long long* inverse_of_first,
                            cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NGRAM_ROW_IDS_H_
