// Tables trained over gRPC have the same bits on every backend.

#include "gmock/gmock.h"
#include "tests/server/backends/backend_cluster.h"
#include "tests/server/backends/training.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using BackendRowsTest = OnBackendTest;

constexpr int64_t kEvents = 5;

TEST_P(BackendRowsTest, ASparseTableTrainsToTheBitsOfTheCpu) {
  const BackendCluster cpu = Servers("cpu", 1);
  const Outcome wanted = Train(*cpu, SparseSpec(1), kEvents, 1);
  const BackendCluster other = Servers(GetParam(), 2);
  ExpectSame(Train(*other, SparseSpec(2), kEvents, 1), wanted);
}

TEST_P(BackendRowsTest, ADenseTableTrainsToTheBitsOfTheCpu) {
  const BackendCluster cpu = Servers("cpu", 1);
  const Outcome wanted = Train(*cpu, DenseSpec(1), kEvents, 2);
  const BackendCluster other = Servers(GetParam(), 2);
  ExpectSame(Train(*other, DenseSpec(2), kEvents, 2), wanted);
}

TEST_P(BackendRowsTest, AResetTableTrainsToTheSameBitsAgain) {
  const BackendCluster servers = Servers(GetParam(), 1);
  const Outcome wanted = Train(*servers, SparseSpec(1), 2, 3);
  ASSERT_THAT(servers->ResetTable("t"), IsOk());
  ExpectSame(Train(*servers, SparseSpec(1), 2, 3), wanted);
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendRowsTest,
                         ::testing::Values("cpu", "cuda"), NameOfBackend);

}  // namespace
}  // namespace rowhouse::testing
