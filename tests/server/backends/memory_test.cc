// What servers say of their device, and that it refuses what it has no room
// for.

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "proto/wire/error.h"
#include "tests/server/backends/backend_cluster.h"
#include "tests/server/backends/training.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::StartsWith;

using BackendMemoryTest = OnBackendTest;

TEST_P(BackendMemoryTest, AServerTellsItsDevice) {
  const BackendCluster servers = Servers(GetParam(), 1);
  const client::ServerInfo& info = servers->servers().front();
  EXPECT_EQ(info.backend, GetParam());
  EXPECT_THAT(info.device.description, StartsWith(GetParam()));
  EXPECT_GT(info.device.memory_bytes, 0);
}

TEST_P(BackendMemoryTest, WhatATableReservesComesBackWhenItGoes) {
  const BackendCluster servers = Servers(GetParam(), 1);
  const auto reserved = [&] {
    return servers->Survey().front().info->reserved_bytes;
  };
  EXPECT_EQ(reserved(), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(servers->CreateTable("t", SparseSpec(1)), IsOk());
    EXPECT_GT(reserved(), 0);
    ASSERT_THAT(servers->DeleteTable("t"), IsOk());
    while (reserved() > 0) {
    }
  }
}

TEST_P(BackendMemoryTest, ATableBeyondTheLimitIsRefusedWithItsBytes) {
  const BackendCluster servers = Servers(GetParam(), 1);
  client::TableSpec spec = SparseSpec(1);
  spec.row_count = 10'000'000;
  const auto refused = servers->CreateTable("t", spec);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                "of 268435456 bytes are reserved"));
  EXPECT_EQ(wire::ReasonOf(refused.status()), "MEMORY");
}

TEST_P(BackendMemoryTest, ATableBeyondTheDeviceIsRefusedWithItsFreeBytes) {
  if (std::string(GetParam()) == "cpu") {
    GTEST_SKIP() << "pages come as they are touched: a CPU refuses nothing";
  }
  const BackendCluster servers =
      Servers(GetParam(), 1, /*memory_limit_bytes=*/int64_t{1} << 60);
  client::TableSpec spec = SparseSpec(1);
  spec.row_count = int64_t{1} << 40;
  const auto refused = servers->CreateTable("t", spec);
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kResourceExhausted, "are free"));
  EXPECT_EQ(wire::ReasonOf(refused.status()), "MEMORY");
  ASSERT_THAT(servers->CreateTable("t", SparseSpec(1)), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendMemoryTest,
                         ::testing::Values("cpu", "cuda"), NameOfBackend);

}  // namespace
}  // namespace rowhouse::testing
