#ifndef ROWHOUSE_KERNELS_CUDA_NCCL_LINK_H_
#define ROWHOUSE_KERNELS_CUDA_NCCL_LINK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/peer_link.h"

namespace rowhouse::kernels::cuda {

/// A link from memory of CUDA device `device_index` to that of another device,
/// of this host or another, by NCCL. Two ends on one device are not possible.
///
/// Errors:
///   kUnimplemented  this build knows no NCCL, or the library is not there.
///   kNotFound       there is no such device.
absl::StatusOr<std::unique_ptr<PeerLink>> MakeNcclLink(int device_index);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_NCCL_LINK_H_
