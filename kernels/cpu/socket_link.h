#ifndef ROWHOUSE_KERNELS_CPU_SOCKET_LINK_H_
#define ROWHOUSE_KERNELS_CPU_SOCKET_LINK_H_

#include <memory>

#include "kernels/peer_link.h"

namespace rowhouse::kernels::cpu {

/// A link between processes of one user of this host, over a Unix socket. It
/// stands in for NCCL where there is no GPU; it is not fast.
std::unique_ptr<PeerLink> MakeSocketLink();

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_SOCKET_LINK_H_
