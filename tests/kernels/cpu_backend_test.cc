#include <cstdlib>
#include <optional>
#include <string>

#include "kernels/backend.h"
#include "kernels/cpu_isa.h"
#include "tests/kernels/backend_conformance.h"

namespace rowhouse::kernels {
namespace {

BackendCase CpuWithThreads(int thread_count) {
  return {"Tbb" + std::to_string(thread_count), [thread_count] {
            return MakeBackend({BackendKind::kCpu, 0, thread_count});
          }};
}

// Skipped where the CPU does not run it.
BackendCase CpuWithIsa(CpuIsa isa) {
  return {NameOf(isa), [isa] {
            return MakeBackend({.kind = BackendKind::kCpu,
                                .device_index = 0,
                                .thread_count = 2,
                                .cpu_isa = isa});
          }};
}

// Sets ROWHOUSE_CPU_ISA for a test, and puts back what it was.
class CpuIsaVariable {
 public:
  explicit CpuIsaVariable(const char* value) {
    const char* const old = std::getenv(kName);
    if (old != nullptr) old_ = old;
    setenv(kName, value, /*overwrite=*/1);
  }
  ~CpuIsaVariable() {
    if (old_.has_value()) {
      setenv(kName, old_->c_str(), /*overwrite=*/1);
    } else {
      unsetenv(kName);
    }
  }

 private:
  static constexpr const char* kName = "ROWHOUSE_CPU_ISA";
  std::optional<std::string> old_;
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Cpu, BackendTest,
                         ::testing::Values(CpuWithThreads(1), CpuWithThreads(2),
                                           CpuWithThreads(8)),
                         NameOfCase);

INSTANTIATE_TEST_SUITE_P(CpuIsa, BackendTest,
                         ::testing::Values(CpuWithIsa(CpuIsa::kPortable),
                                           CpuWithIsa(CpuIsa::kAvx2),
                                           CpuWithIsa(CpuIsa::kAvx512),
                                           CpuWithIsa(CpuIsa::kAmx)),
                         NameOfCase);

// CUDA maps memory of other processes only.
TEST_P(BackendTest, OneAndTheSameMemoryIsMappedByItsName) {
  auto buffer = backend_->AllocateShared(3 * sizeof(int64_t));
  ASSERT_THAT(buffer, IsOk());
  const auto name = backend_->Share(*buffer);
  ASSERT_THAT(name, IsOk());
  EXPECT_EQ(name->size_bytes, 24);
  {
    const auto reader = backend_->Map(*name, MapAccess::kRead);
    const auto writer = backend_->Map(*name, MapAccess::kWrite);
    ASSERT_THAT(reader, IsOk());
    ASSERT_THAT(writer, IsOk());
    writer->as<int64_t>()[2] = 42;
    EXPECT_EQ(reader->as<int64_t>()[2], 42);
    EXPECT_EQ(buffer->as<int64_t>()[2], 42);
  }
  EXPECT_EQ(buffer->as<int64_t>()[2], 42);
  SharedMemory larger = *name;
  larger.size_bytes += 4096;
  EXPECT_THAT(backend_->Map(larger, MapAccess::kRead),
              StatusIs(absl::StatusCode::kNotFound, "smaller"));
  *buffer = Buffer();
  EXPECT_THAT(backend_->Map(*name, MapAccess::kRead),
              StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST(ChooseCpuIsaTest, TakesTheBestByDefault) {
  const CpuIsaVariable variable("");
  EXPECT_EQ(ChooseCpuIsa({}).value(), BestCpuIsa());
}

TEST(ChooseCpuIsaTest, TakesWhatTheVariableNames) {
  const CpuIsaVariable variable("portable");
  EXPECT_EQ(ChooseCpuIsa({}).value(), CpuIsa::kPortable);
}

TEST(ChooseCpuIsaTest, PrefersTheOption) {
  const CpuIsaVariable variable("avx9");
  EXPECT_EQ(ChooseCpuIsa(CpuIsa::kPortable).value(), CpuIsa::kPortable);
}

TEST(ChooseCpuIsaTest, RefusesAnUnknownName) {
  const CpuIsaVariable variable("avx9");
  EXPECT_THAT(MakeBackend({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                        "ROWHOUSE_CPU_ISA is 'avx9'"));
}

TEST(ChooseCpuIsaTest, RefusesWhatTheCpuHasNot) {
  if (HasCpuIsa(CpuIsa::kAmx)) GTEST_SKIP() << "this CPU has them all";
  EXPECT_THAT(ChooseCpuIsa(CpuIsa::kAmx),
              StatusIs(absl::StatusCode::kNotFound, "'amx'"));
}

TEST(MakeBackendTest, TellsWhatItRuns) {
  EXPECT_THAT(MakeBackend({.kind = BackendKind::kCpu,
                           .device_index = 0,
                           .thread_count = 3,
                           .cpu_isa = CpuIsa::kPortable})
                  .value()
                  ->Description(),
              ::testing::HasSubstr("cpu, portable code, OpenBLAS"));
}

TEST(MakeBackendTest, RefusesANegativeThreadCount) {
  EXPECT_THAT(MakeBackend({BackendKind::kCpu, 0, -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, "-1"));
}

TEST(MakeBackendTest, TakesOneThreadPerCoreByDefault) {
  EXPECT_THAT(MakeBackend({}), IsOk());
}

}  // namespace rowhouse::kernels
