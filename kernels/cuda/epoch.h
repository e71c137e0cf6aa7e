#ifndef ROWHOUSE_KERNELS_CUDA_EPOCH_H_
#define ROWHOUSE_KERNELS_CUDA_EPOCH_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace rowhouse::kernels::cuda {

/// Enqueues `*epoch = value`, seen by other processes and devices before what
/// later kernels of the stream write.
cudaError_t LaunchStoreEpoch(int64_t* epoch, int64_t value,
                             cudaStream_t stream);

/// Enqueues `*host = *epoch`, read after all loads of earlier kernels of the
/// stream: a kernel begins when the one before has ended, and a load that has
/// ended is not done again. `host` is page-locked.
cudaError_t LaunchLoadEpoch(const int64_t* epoch, int64_t* host,
                            cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_EPOCH_H_
