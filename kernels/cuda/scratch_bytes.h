#ifndef ROWHOUSE_KERNELS_CUDA_SCRATCH_BYTES_H_
#define ROWHOUSE_KERNELS_CUDA_SCRATCH_BYTES_H_

#include <cstdint>

#include "kernels/backend.h"

namespace rowhouse::kernels::cuda {

/// Scratch memory that the largest of such calls takes.
int64_t ScratchBytes(const ScratchNeeds& needs);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SCRATCH_BYTES_H_
