#include "proto/wire/process.h"

#include <cstdlib>

namespace rowhouse::wire {

void ReceiveInLargePieces() {
  setenv("GRPC_EXPERIMENTS", "-tcp_read_chunks", /*overwrite=*/0);
}

}  // namespace rowhouse::wire
