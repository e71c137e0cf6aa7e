#include "kernels/backend.h"
#include "tests/kernels/backend_conformance.h"

namespace rowhouse::kernels {
namespace {

BackendCase CpuWithThreads(int thread_count) {
  return {"Tbb" + std::to_string(thread_count), [thread_count] {
            return MakeBackend({BackendKind::kCpu, 0, thread_count});
          }};
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cpu, BackendTest,
                         ::testing::Values(CpuWithThreads(1), CpuWithThreads(2),
                                           CpuWithThreads(8)),
                         NameOfCase);

TEST(MakeBackendTest, RefusesANegativeThreadCount) {
  EXPECT_THAT(MakeBackend({BackendKind::kCpu, 0, -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, "-1"));
}

TEST(MakeBackendTest, TakesOneThreadPerCoreByDefault) {
  EXPECT_THAT(MakeBackend({}), IsOk());
}

}  // namespace rowhouse::kernels
