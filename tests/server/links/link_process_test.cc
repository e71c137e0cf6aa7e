// Links between processes, each on a GPU of its own where the backend is one,
// and what is left when one is killed.

#include <csignal>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rowhouse/trainer.h"
#include "server/server.h"
#include "tests/kernels/require_gpu.h"
#include "tests/server/backends/training.h"
#include "tests/server/links/link_cluster.h"
#include "tests/server/one_sided/child.h"
#include "tests/server/one_sided/device_training.h"
#include "tests/server/one_sided/head_outcome.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;
using client::internal::ServerLink;
using ::testing::ElementsAre;

constexpr char kSuite[] = "LinkChild";

// More pieces than are on their way at once.
constexpr int64_t kManyRows = 100'000;

std::vector<int64_t> ManyRows() {
  std::vector<int64_t> row_ids(kManyRows);
  std::iota(row_ids.begin(), row_ids.end(), 0);
  return row_ids;
}

// ------------------------------------------------------------------- roles --

// Serves until it is killed. Arguments: backend, index, count.
TEST(LinkChild, DISABLED_Server) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 3) GTEST_SKIP() << "a role of another test's child";
  const auto server = server::Server::Start(LinkConfig(
      arguments[0], std::stoi(arguments[1]), std::stoi(arguments[2])));
  ASSERT_THAT(server, IsOk());
  Tell("serving " + (*server)->address());
  (*server)->Wait();
}

// Pushes a part, then pulls rows, and never takes them. Arguments: address, and
// a word.
TEST(LinkChild, DISABLED_Client) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const auto cluster = LinkTo({arguments[0]});
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  ASSERT_THAT(ApplyEvent(**trainer, 1, {1, 2}), IsOk());
  ASSERT_EQ(LinksOf(*cluster).push_count(), 1);
  LinksOf(*cluster).set_on_transfer([&](ServerLink&) {
    Tell("transferring");
    (void)(*trainer)->WaitForEvent(2, {.timeout = absl::Hours(1)});
  });
  (void)PullFloats(**trainer, ManyRows());
}

// Pulls rows of a server that is killed meanwhile. Arguments: address, and a
// word.
TEST(LinkChild, DISABLED_Survivor) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const auto cluster = LinkTo({arguments[0]});
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec(kManyRows)), IsOk());
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  ASSERT_THAT(ApplyEvent(**trainer, 1, {1}), IsOk());
  LinksOf(*cluster).set_on_transfer([&](ServerLink&) {
    Tell("transferring");
    while (cluster->Survey().front().status.ok()) {
    }
  });
  const auto away =
      PullFloats(**trainer, ManyRows(), {.timeout = absl::Seconds(5)});
  ASSERT_THAT(away, ::testing::Not(IsOk()));
  ASSERT_EQ(LinksOf(*cluster).pull_count(), 0);
  ASSERT_EQ(LinksOf(*cluster).failed_count(), 1);
  Tell("ended with " + std::string(away.status().message()));
}

// ------------------------------------------------------------------- tests --

class LinkProcessTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) != "cuda") return;
    if (kernels::OneGpuAsTwo()) return;
    const absl::Status found = kernels::TwoGpus();
    if (kernels::MayLackGpu(found)) GTEST_SKIP() << found;
    ASSERT_THAT(found, IsOk());
  }

  // Servers in processes of their own; `addresses_` are theirs.
  void Serve(int32_t count) {
    for (int32_t index = 0; index < count; ++index) {
      servers_.push_back(StartChild(
          "Server", {GetParam(), std::to_string(index), std::to_string(count)},
          kSuite));
    }
    for (const auto& server : servers_) {
      addresses_.push_back(AwaitTold(*server, "serving "));
    }
  }

  static int64_t ReservedBytes(client::Cluster& cluster) {
    return cluster.Survey().front().info->reserved_bytes;
  }

  std::vector<std::unique_ptr<Process>> servers_;
  std::vector<std::string> addresses_;
};

TEST_P(LinkProcessTest, TrainingGivesTheBitsOfGrpc) {
  Serve(2);
  for (const auto& spec_of : {SparseSpec, DenseSpec}) {
    const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
    const Outcome wanted = Train(*plain, spec_of(2), 4, 12);
    ASSERT_THAT(plain->DeleteTable("t"), IsOk());
    const auto cluster = LinkTo(addresses_);
    ExpectSame(Train(*cluster, spec_of(2), 4, 12), wanted);
    for (int32_t server = 0; server < 2; ++server) {
      EXPECT_GT(LinksOf(*cluster, server).pull_count(), 0);
      EXPECT_GT(LinksOf(*cluster, server).push_count(), 0);
      EXPECT_EQ(LinksOf(*cluster, server).failed_count(), 0);
    }
    ASSERT_THAT(cluster->DeleteTable("t"), IsOk());
  }
}

TEST_P(LinkProcessTest, HeadCallsGiveTheBitsOfGrpc) {
  Serve(2);
  const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
  const HeadOutcome wanted = RunHead(*plain);
  ASSERT_THAT(plain->DeleteTable("t"), IsOk());
  const auto cluster = LinkTo(addresses_);
  ExpectSame(RunHead(*cluster), wanted);
  for (int32_t server = 0; server < 2; ++server) {
    EXPECT_EQ(LinksOf(*cluster, server).head_count(), 2);
  }
}

TEST_P(LinkProcessTest, AKilledClientLeavesTheServerAndItsMemoryFree) {
  Serve(1);
  const auto cluster = ConnectTo(addresses_, /*one_sided=*/false);
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec(kManyRows)), IsOk());
  const int64_t before = ReservedBytes(*cluster);
  const auto client = StartChild("Client", {addresses_[0], "x"}, kSuite);
  AwaitTold(*client, "transferring");
  EXPECT_GT(ReservedBytes(*cluster), before);
  client->Signal(SIGKILL);
  EXPECT_EQ(client->Wait(), -SIGKILL);
  while (ReservedBytes(*cluster) > before) {
  }
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  EXPECT_THAT(ApplyEvent(**trainer, 2, {1}), IsOk());
  EXPECT_THAT(*PullFloats(**trainer, {1, 2}), ElementsAre(-2, -2, -1, -1));
}

TEST_P(LinkProcessTest, AKilledServerLeavesItsClientWithAnError) {
  Serve(1);
  const auto client = StartChild("Survivor", {addresses_[0], "x"}, kSuite);
  ExpectClientOutlives(*servers_[0], *client, "transferring", addresses_[0]);
}

// The lane, and other clients, do not wait for one that takes no rows.
TEST_P(LinkProcessTest, AStoppedClientHoldsNobodyUp) {
  Serve(1);
  const auto cluster = ConnectTo(addresses_, /*one_sided=*/false);
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec(kManyRows)), IsOk());
  const auto client = StartChild("Client", {addresses_[0], "x"}, kSuite);
  AwaitTold(*client, "transferring");
  client->Signal(SIGSTOP);
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  for (int64_t event = 2; event < 12; ++event) {
    EXPECT_THAT(ApplyEvent(**trainer, event, {1}), IsOk());
  }
  EXPECT_THAT(*PullFloats(**trainer, {1, 2}), ElementsAre(-11, -11, -1, -1));
}

// Of a client whose rows, gradients and ids lie in its GPU's memory: no copy
// but the link's where they lie together, and one more on the GPU where they do
// not.
TEST(LinkDeviceTest, DeviceMemoryGivesTheBitsOfHostMemory) {
  if (!kernels::OneGpuAsTwo()) {
    const absl::Status found = kernels::TwoGpus();
    if (kernels::MayLackGpu(found)) GTEST_SKIP() << found;
    ASSERT_THAT(found, IsOk());
  }
  const auto gpu = kernels::MakeBackend({.kind = kernels::BackendKind::kCuda,
                                         .device_index = kernels::SecondGpu()});
  ASSERT_THAT(gpu, IsOk());
  for (const int32_t count : {1, 2}) {
    std::vector<std::unique_ptr<Process>> servers;
    std::vector<std::string> addresses;
    for (int32_t index = 0; index < count; ++index) {
      servers.push_back(StartChild(
          "Server", {"cuda", std::to_string(index), std::to_string(count)},
          kSuite));
      addresses.push_back(AwaitTold(*servers.back(), "serving "));
    }
    const auto plain = ConnectTo(addresses, /*one_sided=*/false);
    const DeviceOutcome wanted = TrainIn(*plain, nullptr, count, 25);
    const auto cluster = LinkTo(addresses);
    EXPECT_TRUE(TrainIn(*cluster, gpu->get(), count, 25) == wanted);
    for (int32_t server = 0; server < count; ++server) {
      EXPECT_GE(LinksOf(*cluster, server).pull_count(), 5);
      EXPECT_GE(LinksOf(*cluster, server).push_count(), 15);
      EXPECT_EQ(LinksOf(*cluster, server).failed_count(), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LinkProcessTest,
                         ::testing::Values("cpu", "cuda"),
                         [](const auto& backend) {
                           return std::string(backend.param);
                         });

}  // namespace
}  // namespace rowhouse::testing
