#include "kernels/peer_link.h"

#include "kernels/cpu/socket_link.h"
#include "kernels/cuda/nccl_link.h"

namespace rowhouse::kernels {

absl::StatusOr<std::unique_ptr<PeerLink>> MakePeerLink(
    const BackendOptions& options) {
  return options.kind == BackendKind::kCuda
             ? cuda::MakeNcclLink(options.device_index)
             : cpu::MakeSocketLink();
}

}  // namespace rowhouse::kernels
