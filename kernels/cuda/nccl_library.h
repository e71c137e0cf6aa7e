#ifndef ROWHOUSE_KERNELS_CUDA_NCCL_LIBRARY_H_
#define ROWHOUSE_KERNELS_CUDA_NCCL_LIBRARY_H_

#include <nccl.h>

#include "absl/status/statusor.h"

namespace rowhouse::kernels::cuda {

/// What is used of NCCL, out of `libnccl.so.2`, which is looked for when it is
/// first asked for: programs run without it.
struct NcclLibrary {
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;

  /// The library; the same one each time. Sets the environment's
  /// NCCL_NVLS_ENABLE to 0 before it is opened, unless it is set: links need no
  /// multicast, and some systems have none to give. Thread-safe.
  ///
  /// Errors:
  ///   kUnimplemented  it is not there, or too old; says what the loader said.
  static absl::StatusOr<const NcclLibrary*> Find();
};

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NCCL_LIBRARY_H_
