#ifndef ROWHOUSE_TESTS_KERNELS_REQUIRE_GPU_H_
#define ROWHOUSE_TESTS_KERNELS_REQUIRE_GPU_H_

#include <cstdlib>

#include "absl/status/status.h"

namespace rowhouse::kernels {

/// Whether a test may be skipped that could not make the CUDA backend: this
/// build or machine has none, and ROWHOUSE_REQUIRE_GPU does not ask for one.
inline bool MayLackGpu(const absl::Status& made) {
  return (absl::IsUnimplemented(made) || absl::IsNotFound(made)) &&
         std::getenv("ROWHOUSE_REQUIRE_GPU") == nullptr;
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_REQUIRE_GPU_H_
