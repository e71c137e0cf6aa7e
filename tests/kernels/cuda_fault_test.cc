// A fault of the device is a status from then on, and never ends the process.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/backend.h"
#include "tests/kernels/require_gpu.h"

namespace rowhouse::kernels {
namespace {

constexpr int kAsItShould = 7;

// Gathers a row that is nowhere; says what came of it.
[[noreturn]] void Fault() {
  const auto backend = MakeBackend({BackendKind::kCuda}).value();
  const Buffer rows = backend->Allocate(1024).value();
  const Buffer states = backend->Allocate(sizeof(RowState)).value();
  const Buffer slots = backend->Allocate(sizeof(int64_t)).value();
  const Buffer out = backend->Allocate(1024).value();
  RowTable table;
  table.row_count = 1;
  table.dim = 512;
  table.weights = rows.data();
  table.states = states.as<RowState>();
  const int64_t nowhere = int64_t{1} << 40;
  backend->Copy(&nowhere, slots.data(), sizeof(nowhere)).IgnoreError();
  (void)backend->Synchronize();
  absl::Status faulted =
      backend->GatherRows(table, {slots.as<int64_t>(), 1}, out.data());
  faulted.Update(backend->Synchronize());
  const absl::Status later = backend->Synchronize();
  const absl::StatusOr<Buffer> memory = backend->Allocate(1024);
  std::fprintf(stderr, "%s; %s; %s\n", faulted.ToString().c_str(),
               later.ToString().c_str(), memory.status().ToString().c_str());
  const bool well =
      absl::IsInternal(faulted) && absl::IsInternal(later) && !memory.ok();
  std::exit(well ? kAsItShould : 1);
}

TEST(CudaFaultTest, AFaultIsAStatusFromThenOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  {
    const auto made = MakeBackend({BackendKind::kCuda});
    if (!made.ok() && MayLackGpu(made.status())) {
      GTEST_SKIP() << made.status();
    }
    ASSERT_TRUE(made.ok()) << made.status();
  }
  EXPECT_EXIT(Fault(), ::testing::ExitedWithCode(kAsItShould), "INTERNAL");
}

}  // namespace
}  // namespace rowhouse::kernels
