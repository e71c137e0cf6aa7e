#include "tests/kernels/backend_conformance.h"

namespace rowhouse::kernels {

INSTANTIATE_TEST_SUITE_P(Cuda, BackendTest,
                         ::testing::Values(BackendCase{
                             "Device0",
                             [] { return MakeBackend({BackendKind::kCuda}); },
                             /*is_gpu=*/true}),
                         NameOfCase);

}  // namespace rowhouse::kernels
