#ifndef ROWHOUSE_TESTS_KERNELS_REQUIRE_GPU_H_
#define ROWHOUSE_TESTS_KERNELS_REQUIRE_GPU_H_

#include <cstdlib>

#include "absl/status/status.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {

/// Whether a test may be skipped that could not make the CUDA backend: this
/// build or machine has none, and ROWHOUSE_REQUIRE_GPU does not ask for one.
inline bool MayLackGpu(const absl::Status& made) {
  return (absl::IsUnimplemented(made) || absl::IsNotFound(made)) &&
         std::getenv("ROWHOUSE_REQUIRE_GPU") == nullptr;
}

/// Whether tests between processes take the first GPU for the second one too:
/// ROWHOUSE_ONE_GPU_AS_TWO. NCCL then is told that each process is a host of
/// its own, and moves all by sockets: right or wrong it shows, but not how
/// fast.
inline bool OneGpuAsTwo() {
  return std::getenv("ROWHOUSE_ONE_GPU_AS_TWO") != nullptr;
}

/// The GPU of clients whose servers work on the first one.
inline int SecondGpu() { return OneGpuAsTwo() ? 0 : 1; }

/// OK where there are two GPUs, else why not.
inline absl::Status TwoGpus() {
  for (int device = 0; device < 2; ++device) {
    absl::Status made =
        MakeBackend({.kind = BackendKind::kCuda, .device_index = device})
            .status();
    if (!made.ok()) return made;
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_REQUIRE_GPU_H_
