// The one-sided path between processes, and what is left when one is killed.

#include <csignal>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "server/server.h"
#include "tests/kernels/require_gpu.h"
#include "tests/server/backends/training.h"
#include "tests/server/one_sided/child.h"
#include "tests/server/one_sided/head_outcome.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;
using ::testing::Each;
using ::testing::ElementsAre;

// ------------------------------------------------------------------- roles --

// Serves until it is killed. Arguments: backend, index, count.
TEST(OneSidedChild, DISABLED_Server) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 3) GTEST_SKIP() << "a role of another test's child";
  const auto server = server::Server::Start(OneSidedConfig(
      arguments[0], std::stoi(arguments[1]), std::stoi(arguments[2])));
  ASSERT_THAT(server, IsOk());
  Tell("serving " + (*server)->address());
  (*server)->Wait();
}

// Pushes a part, then reads rows, and is never done with it. Arguments:
// address, and a word.
TEST(OneSidedChild, DISABLED_Client) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const auto cluster = ConnectTo({arguments[0]});
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  ASSERT_THAT(ApplyEvent(**trainer, 1, {1, 2}), IsOk());
  ASSERT_EQ(ChannelOf(*cluster).push_count(), 1);
  ChannelOf(*cluster).set_after_gather([&] {
    Tell("gathering");
    (void)(*trainer)->WaitForEvent(2, {.timeout = absl::Hours(1)});
  });
  (void)PullFloats(**trainer, {1});
}

// Whether this process has a server's memory file mapped.
bool HasMapped() {
  std::ifstream file("/proc/self/maps");
  std::stringstream maps;
  maps << file.rdbuf();
  return maps.str().find("memfd:rowhouse") != std::string::npos;
}

// Reads rows of a server that is killed meanwhile. Arguments: address, and a
// word.
TEST(OneSidedChild, DISABLED_Survivor) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const auto cluster = ConnectTo({arguments[0]});
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  ASSERT_THAT(ApplyEvent(**trainer, 1, {1}), IsOk());
  ChannelOf(*cluster).set_after_gather([&] {
    Tell("gathering");
    while (cluster->Survey().front().status.ok()) {
    }
  });
  // The rows were there, and nobody has changed them.
  ASSERT_THAT(*PullFloats(**trainer, {1}), ElementsAre(-1, -1));
  ChannelOf(*cluster).set_after_gather(nullptr);
  while (HasMapped()) {
  }
  const auto away =
      PullFloats(**trainer, {1}, {.timeout = absl::Milliseconds(300)});
  ASSERT_THAT(away, ::testing::Not(IsOk()));
  Tell("ended with " + std::string(away.status().message()));
}

// ------------------------------------------------------------------- tests --

class OneSidedProcessTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) != "cuda") return;
    const absl::Status made =
        kernels::MakeBackend({.kind = kernels::BackendKind::kCuda}).status();
    if (kernels::MayLackGpu(made)) GTEST_SKIP() << made;
    ASSERT_THAT(made, IsOk());
  }

  // Servers in processes of their own; `addresses_` are theirs.
  void Serve(int32_t count) {
    for (int32_t index = 0; index < count; ++index) {
      servers_.push_back(StartChild(
          "Server",
          {GetParam(), std::to_string(index), std::to_string(count)}));
    }
    for (const auto& server : servers_) {
      addresses_.push_back(AwaitTold(*server, "serving "));
    }
  }

  static std::unique_ptr<Trainer> Join(const client::Cluster& cluster) {
    auto trainer = Trainer::Join(cluster, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }

  static int64_t ReservedBytes(client::Cluster& cluster) {
    return cluster.Survey().front().info->reserved_bytes;
  }

  std::vector<std::unique_ptr<Process>> servers_;
  std::vector<std::string> addresses_;
};

TEST_P(OneSidedProcessTest, TrainingGivesTheBitsOfGrpc) {
  Serve(2);
  for (const auto& spec_of : {SparseSpec, DenseSpec}) {
    const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
    const Outcome wanted = Train(*plain, spec_of(2), 4, 12);
    ASSERT_THAT(plain->DeleteTable("t"), IsOk());
    const auto cluster = ConnectTo(addresses_);
    ExpectSame(Train(*cluster, spec_of(2), 4, 12), wanted);
    for (int32_t server = 0; server < 2; ++server) {
      EXPECT_GT(ChannelOf(*cluster, server).pull_count(), 0);
      EXPECT_GT(ChannelOf(*cluster, server).push_count(), 0);
    }
    ASSERT_THAT(cluster->DeleteTable("t"), IsOk());
  }
}

TEST_P(OneSidedProcessTest, HeadCallsGiveTheBitsOfGrpc) {
  Serve(2);
  const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
  const HeadOutcome wanted = RunHead(*plain);
  ASSERT_THAT(plain->DeleteTable("t"), IsOk());
  const auto cluster = ConnectTo(addresses_);
  ExpectSame(RunHead(*cluster), wanted);
  for (int32_t server = 0; server < 2; ++server) {
    EXPECT_EQ(ChannelOf(*cluster, server).head_count(), 2);
  }
}

TEST_P(OneSidedProcessTest, RowsThatChangeUnderAGatherAreThrownAway) {
  Serve(1);
  const auto cluster = ConnectTo(addresses_);
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join(*cluster);
  EXPECT_THAT(*PullFloats(*trainer, {1}), Each(0.0F));
  bool changed = false;
  ChannelOf(*cluster).set_after_gather([&] {
    if (std::exchange(changed, true)) return;
    EXPECT_THAT(ApplyEvent(*trainer, 1, {1}), IsOk());
  });
  EXPECT_THAT(*PullFloats(*trainer, {1}), ElementsAre(-1, -1));
  EXPECT_EQ(ChannelOf(*cluster).discarded_count(), 1);
  EXPECT_EQ(ChannelOf(*cluster).pull_count(), 2);
}

TEST_P(OneSidedProcessTest, AKilledClientLeavesTheServerAndItsMemoryFree) {
  Serve(1);
  const auto cluster = ConnectTo(addresses_, /*one_sided=*/false);
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const int64_t before = ReservedBytes(*cluster);
  const auto client = StartChild("Client", {addresses_[0], "x"});
  AwaitTold(*client, "gathering");
  EXPECT_GT(ReservedBytes(*cluster), before);
  client->Signal(SIGKILL);
  EXPECT_EQ(client->Wait(), -SIGKILL);
  while (ReservedBytes(*cluster) > before) {
  }
  const auto trainer = Join(*cluster);
  EXPECT_THAT(ApplyEvent(*trainer, 2, {1}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {1, 2}), ElementsAre(-2, -2, -1, -1));
  ASSERT_THAT(cluster->DeleteTable("t"), IsOk());
  while (ReservedBytes(*cluster) > 0) {
  }
}

TEST_P(OneSidedProcessTest, AKilledServerLeavesItsClientWithAnError) {
  Serve(1);
  const auto client = StartChild("Survivor", {addresses_[0], "x"});
  ExpectClientOutlives(*servers_[0], *client, "gathering", addresses_[0]);
}

INSTANTIATE_TEST_SUITE_P(Backends, OneSidedProcessTest,
                         ::testing::Values("cpu", "cuda"),
                         [](const auto& backend) {
                           return std::string(backend.param);
                         });

}  // namespace
}  // namespace rowhouse::testing
