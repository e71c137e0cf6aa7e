// Rows and gradients in a client's GPU memory, of servers in other processes.

#include <csignal>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "rowhouse/ngram_embedding.h"
#include "tests/client/device_buffer.h"
#include "tests/kernels/require_gpu.h"
#include "tests/server/one_sided/child.h"
#include "tests/server/one_sided/device_training.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;
using ::testing::ElementsAre;

absl::StatusOr<std::unique_ptr<kernels::Backend>> Gpu() {
  return kernels::MakeBackend({.kind = kernels::BackendKind::kCuda});
}

// ------------------------------------------------------------------- roles --

// Pushes from its GPU, pulls into it, and is never done with it. Arguments:
// address, and a word.
TEST(OneSidedChild, DISABLED_DeviceClient) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const auto gpu = Gpu();
  ASSERT_THAT(gpu, IsOk());
  const auto cluster = ConnectTo({arguments[0]}, /*one_sided=*/true, 0);
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  const std::vector<int64_t> row_ids = {1, 2};
  const DeviceBuffer<float> rows(**gpu, {1, 1, 1, 1});
  ASSERT_THAT((*trainer)->Push(1, row_ids, rows.bytes()), IsOk());
  ASSERT_THAT((*trainer)->SealAndCommit(1, SignStep()), IsOk());
  ASSERT_THAT((*trainer)->WaitForEvent(1), IsOk());
  ChannelOf(*cluster).set_after_gather([&] {
    Tell("gathering");
    (void)(*trainer)->WaitForEvent(2, {.timeout = absl::Hours(1)});
  });
  (void)(*trainer)->Pull(row_ids, rows.bytes());
}

// Pulls into its GPU rows of a server that is killed meanwhile. Arguments:
// address, and a word.
TEST(OneSidedChild, DISABLED_DeviceSurvivor) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const auto gpu = Gpu();
  ASSERT_THAT(gpu, IsOk());
  const auto cluster = ConnectTo({arguments[0]}, /*one_sided=*/true, 0);
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  ASSERT_THAT(ApplyEvent(**trainer, 1, {1}), IsOk());
  ChannelOf(*cluster).set_after_gather([&] {
    Tell("gathering");
    while (cluster->Survey().front().status.ok()) {
    }
  });
  const std::vector<int64_t> row_ids = {1};
  const DeviceBuffer<float> rows(**gpu, {9, 9});
  ASSERT_THAT((*trainer)->Pull(row_ids, rows.bytes()), IsOk());
  ASSERT_THAT(rows.Read(), ElementsAre(-1, -1));
  ChannelOf(*cluster).set_after_gather(nullptr);
  const auto away = (*trainer)->Push(2, row_ids, rows.bytes(),
                                     {.timeout = absl::Milliseconds(300)});
  ASSERT_THAT(away, ::testing::Not(IsOk()));
  // Its own memory is as it was.
  ASSERT_THAT(rows.Read(), ElementsAre(-1, -1));
  Tell("ended with " + std::string(away.status().message()));
}

// ------------------------------------------------------------------- tests --

// A server's backend, and whether clients map its memory.
class DeviceProcessTest
    : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  void SetUp() override {
    auto gpu = Gpu();
    if (kernels::MayLackGpu(gpu.status())) GTEST_SKIP() << gpu.status();
    ASSERT_THAT(gpu, IsOk());
    gpu_ = *std::move(gpu);
  }

  void Serve(int32_t count) {
    servers_.clear();
    addresses_.clear();
    for (int32_t index = 0; index < count; ++index) {
      servers_.push_back(
          StartChild("Server", {std::get<0>(GetParam()), std::to_string(index),
                                std::to_string(count)}));
    }
    for (const auto& server : servers_) {
      addresses_.push_back(AwaitTold(*server, "serving "));
    }
  }

  std::unique_ptr<client::Cluster> Connect() const {
    return ConnectTo(addresses_, std::get<1>(GetParam()), 0);
  }

  std::unique_ptr<kernels::Backend> gpu_;
  std::vector<std::unique_ptr<Process>> servers_;
  std::vector<std::string> addresses_;
};

class MappedDeviceProcessTest : public DeviceProcessTest {};

TEST_P(DeviceProcessTest, TrainingGivesTheBitsOfHostMemory) {
  for (const int32_t count : {1, 2}) {
    Serve(count);
    const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
    const DeviceOutcome wanted = TrainIn(*plain, nullptr, count, 23);
    EXPECT_EQ(wanted.rows.size(), 5U);
    const auto cluster = Connect();
    EXPECT_TRUE(TrainIn(*cluster, gpu_.get(), count, 23) == wanted);
    for (int32_t server = 0; server < count; ++server) {
      if (!std::get<1>(GetParam())) continue;
      EXPECT_GE(ChannelOf(*cluster, server).pull_count(), 5);
      EXPECT_GE(ChannelOf(*cluster, server).push_count(), 15);
    }
  }
}

TEST_P(DeviceProcessTest, HeadCallsGiveTheBitsOfHostMemory) {
  for (const int32_t count : {1, 2}) {
    Serve(count);
    const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
    const DeviceHeadOutcome wanted = RunHeadIn(*plain, nullptr, count, 25);
    EXPECT_FALSE(wanted.losses.empty());
    const auto cluster = Connect();
    EXPECT_TRUE(RunHeadIn(*cluster, gpu_.get(), count, 25) == wanted);
  }
}

// Trains cycles of two steps; returns the digest, and what was embedded.
std::pair<client::TableDigest, std::vector<float>> TrainNgrams(
    client::Cluster& cluster, kernels::Backend& gpu, bool on_device,
    int32_t shard_count) {
  constexpr int64_t kDim = 96;
  Random random(24);
  SCOPED_TRACE(random.Trace());
  client::TableSpec spec = SmallSpec(5000, shard_count);
  spec.dim = kDim;
  spec.max_contribution_row_count = 20000;
  spec.initializer = {client::Initializer::Kind::kUniform, 3, 0.5F};
  spec.ngram = client::NgramMetadata{5, 64, {}};
  std::pair<client::TableDigest, std::vector<float>> outcome;
  EXPECT_THAT(cluster.CreateTable("t", spec), IsOk());
  {
    const auto trainer = Trainer::Join(cluster, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    client::NgramOptions options;
    options.cache_row_count = 20000;
    options.is_update = [](int64_t step) { return step % 2 == 1; };
    options.on_device = on_device;
    const auto embedding = client::NgramEmbedding::Create(**trainer, options);
    EXPECT_THAT(embedding, IsOk());
    if (!embedding.ok()) return outcome;
    for (int64_t cycle = 0; cycle < 3; ++cycle) {
      std::vector<std::vector<int32_t>> tokens(2);
      for (auto& step : tokens) {
        step.resize(random.Integer(0, 3000));
        for (int32_t& token : step) {
          token = static_cast<int32_t>(random.Integer(0, 50256));
        }
      }
      const std::vector<client::Tokens> steps(tokens.begin(), tokens.end());
      EXPECT_THAT((*embedding)->StartCycle(2 * cycle, steps), IsOk());
      for (const auto& step : tokens) {
        std::vector<float> embedded(step.size() * kDim, -99);
        if (on_device) {
          const DeviceBuffer<float> out(gpu, embedded);
          EXPECT_THAT((*embedding)->Embed(step, out.bytes()), IsOk());
          EXPECT_THAT((*embedding)->AccumulateGradient(step, out.bytes()),
                      IsOk());
          embedded = out.Read();
        } else {
          const auto bytes = std::as_writable_bytes(std::span(embedded));
          EXPECT_THAT((*embedding)->Embed(step, bytes), IsOk());
          EXPECT_THAT((*embedding)->AccumulateGradient(step, bytes), IsOk());
        }
        outcome.second.insert(outcome.second.end(), embedded.begin(),
                              embedded.end());
      }
      EXPECT_THAT((*embedding)
                      ->FinishCycle(client::RowAdamScalars{.step_size = 0.1,
                                                           .decay = 0.01,
                                                           .beta2 = 0.95,
                                                           .eps = 1e-10}),
                  IsOk());
    }
    EXPECT_THAT((*trainer)->WaitForEvent(3), IsOk());
  }
  const auto digest = cluster.Digest("t", 3);
  EXPECT_THAT(digest, IsOk());
  if (digest.ok()) outcome.first = *digest;
  EXPECT_THAT(cluster.DeleteTable("t"), IsOk());
  return outcome;
}

TEST_P(DeviceProcessTest, AnNgramCacheOnTheGpuGivesTheBitsOfTheHosts) {
  for (const int32_t count : {1, 2}) {
    Serve(count);
    const auto cluster = Connect();
    const auto wanted = TrainNgrams(*cluster, *gpu_, false, count);
    const auto found = TrainNgrams(*cluster, *gpu_, true, count);
    EXPECT_EQ(found.first, wanted.first);
    EXPECT_TRUE(found.second == wanted.second);
  }
}

TEST_P(MappedDeviceProcessTest, AKilledClientLeavesTheServerAndItsMemoryFree) {
  Serve(1);
  const auto cluster = ConnectTo(addresses_, /*one_sided=*/false);
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const auto reserved = [&] {
    return cluster->Survey().front().info->reserved_bytes;
  };
  const int64_t before = reserved();
  const auto client = StartChild("DeviceClient", {addresses_[0], "x"});
  AwaitTold(*client, "gathering");
  EXPECT_GT(reserved(), before);
  client->Signal(SIGKILL);
  EXPECT_EQ(client->Wait(), -SIGKILL);
  while (reserved() > before) {
  }
  const auto trainer = Trainer::Join(*cluster, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  EXPECT_THAT(ApplyEvent(**trainer, 2, {1}), IsOk());
  EXPECT_THAT(*PullFloats(**trainer, {1, 2}), ElementsAre(-2, -2, -1, -1));
}

TEST_P(MappedDeviceProcessTest, AKilledServerLeavesItsClientAndTheGpuAtWork) {
  Serve(1);
  const auto client = StartChild("DeviceSurvivor", {addresses_[0], "x"});
  ExpectClientOutlives(*servers_[0], *client, "gathering", addresses_[0]);
}

std::string NameOf(
    const ::testing::TestParamInfo<DeviceProcessTest::ParamType>& server) {
  return std::string("Of") +
         (std::get<0>(server.param) == std::string("cpu") ? "Cpu" : "Cuda") +
         (std::get<1>(server.param) ? "Mapped" : "OverGrpc");
}

INSTANTIATE_TEST_SUITE_P(Servers, DeviceProcessTest,
                         ::testing::Combine(::testing::Values("cpu", "cuda"),
                                            ::testing::Bool()),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Servers, MappedDeviceProcessTest,
                         ::testing::Combine(::testing::Values("cpu", "cuda"),
                                            ::testing::Values(true)),
                         NameOf);

}  // namespace
}  // namespace rowhouse::testing
