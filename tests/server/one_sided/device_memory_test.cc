// Rows and gradients in a client's device, over each transport.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/internal/cluster_core.h"
#include "client/internal/grpc_shard_channel.h"
#include "client/internal/link_channel.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "tests/client/device_buffer.h"
#include "tests/client/fake_device.h"
#include "tests/server/one_sided/device_training.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;
using client::internal::LinkChannel;
using client::internal::OneSidedChannel;
using ::testing::ElementsAre;

enum class Way : uint8_t {
  kGrpc,      // Rows go in messages.
  kMapped,    // The device maps the servers' memory.
  kMappedBy,  // The host maps it.
  kLinked,    // A link brings them to the host.
};

class DeviceMemoryTest : public ::testing::TestWithParam<Way> {
 protected:
  void Serve(int32_t count) {
    for (int32_t index = 0; index < count; ++index) {
      config::v1::ServerConfig config = OneSidedConfig("cpu", index, count);
      config.mutable_nccl()->set_block_bytes(1000);
      auto server = server::Server::Start(config);
      ASSERT_THAT(server, IsOk());
      addresses_.push_back((*server)->address());
      servers_.push_back(*std::move(server));
    }
    Connect();
  }

  // As `Cluster::Connect` does for a GPU.
  void Connect() {
    std::vector<std::unique_ptr<client::internal::ShardChannel>> channels;
    for (const std::string& address : addresses_) {
      const auto connection =
          grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
      auto channel = client::internal::MakeGrpcShardChannel(
          address, {connection}, device_);
      if (GetParam() == Way::kLinked) {
        channel = std::make_unique<LinkChannel>(
            std::move(channel), connection,
            client::internal::LinkSettings{
                .backend = [this](std::string_view) { return host_; },
                .patience = absl::Seconds(60)},
            /*least_row_count=*/0);
      } else if (GetParam() != Way::kGrpc) {
        channel = std::make_unique<OneSidedChannel>(
            std::move(channel), connection,
            [this](std::string_view) -> std::shared_ptr<kernels::Backend> {
              if (GetParam() == Way::kMapped) return device_;
              return host_;
            });
      }
      channels.push_back(std::move(channel));
    }
    cluster_ = std::make_unique<client::Cluster>(
        std::make_shared<client::internal::ClusterCore>(
            std::move(channels), client::internal::MakeSystemClock(),
            client::RetryOptions(), device_));
  }

  const LinkChannel& Links(int32_t server) const {
    return dynamic_cast<const LinkChannel&>(cluster_->core()->channel(server));
  }

  void TearDown() override {
    cluster_.reset();
    EXPECT_EQ(device_->waiting_count(), 0);
    EXPECT_EQ(device_->held_bytes(), 0);
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
  std::shared_ptr<kernels::Backend> host_ =
      *kernels::MakeBackend({.thread_count = 1});
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::string> addresses_;
  std::unique_ptr<client::Cluster> cluster_;
};

TEST_P(DeviceMemoryTest, TrainingGivesTheBitsOfHostMemory) {
  for (const int32_t count : {1, 2}) {
    servers_.clear();
    addresses_.clear();
    Serve(count);
    const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
    const DeviceOutcome wanted = TrainIn(*plain, nullptr, count, 21);
    EXPECT_EQ(wanted.rows.size(), 5U);
    EXPECT_TRUE(TrainIn(*cluster_, device_.get(), count, 21) == wanted);
    EXPECT_TRUE(TrainIn(*cluster_, nullptr, count, 21) == wanted);
    for (int32_t server = 0; server < count; ++server) {
      if (GetParam() == Way::kGrpc) continue;
      if (GetParam() == Way::kLinked) {
        EXPECT_GE(Links(server).pull_count(), 5);
        EXPECT_GE(Links(server).push_count(), 15);
        continue;
      }
      EXPECT_GE(ChannelOf(*cluster_, server).pull_count(), 5);
      EXPECT_GE(ChannelOf(*cluster_, server).push_count(), 15);
    }
  }
}

TEST_P(DeviceMemoryTest, HeadCallsGiveTheBitsOfHostMemory) {
  for (const int32_t count : {1, 2}) {
    servers_.clear();
    addresses_.clear();
    Serve(count);
    const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
    const DeviceHeadOutcome wanted = RunHeadIn(*plain, nullptr, count, 22);
    EXPECT_FALSE(wanted.losses.empty());
    EXPECT_TRUE(RunHeadIn(*cluster_, device_.get(), count, 22) == wanted);
    EXPECT_TRUE(RunHeadIn(*cluster_, nullptr, count, 22) == wanted);
    for (int32_t server = 0; server < count; ++server) {
      if (GetParam() == Way::kGrpc) continue;
      EXPECT_EQ(GetParam() == Way::kLinked
                    ? Links(server).head_count()
                    : ChannelOf(*cluster_, server).head_count(),
                2);
    }
  }
}

TEST_P(DeviceMemoryTest, ADeviceAtFaultEndsTheCallAndTheNextOneServes) {
  Serve(1);
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Trainer::Join(*cluster_, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  const std::vector<int64_t> row_ids = {3, 1};
  const DeviceBuffer<float> ones(*device_, {1, 1, 1, 1});
  ASSERT_THAT((*trainer)->Push(1, row_ids, ones.bytes(), {.part = 0}), IsOk());
  device_->fail_work = true;
  EXPECT_THAT((*trainer)->Push(1, row_ids, ones.bytes(), {.part = 1}),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  EXPECT_THAT((*trainer)->Pull(row_ids, ones.bytes()),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  device_->fail_work = false;
  ASSERT_THAT((*trainer)->Push(1, row_ids, ones.bytes(), {.part = 1}), IsOk());
  ASSERT_THAT((*trainer)->SealAndCommit(1, SignStep()), IsOk());
  ASSERT_THAT(
      (*trainer)->Pull(row_ids, ones.bytes(), {.min_event = 1}).status(),
      IsOk());
  EXPECT_THAT(ones.Read(), ElementsAre(-1, -1, -1, -1));
}

TEST_P(DeviceMemoryTest, APullThatIsGivenUpWritesNoMore) {
  Serve(1);
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Trainer::Join(*cluster_, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  const std::vector<int64_t> row_ids = {3, 1};
  {
    const DeviceBuffer<float> out(*device_, {9, 9, 9, 9});
    // Of an event that does not come.
    const client::PendingPull pull =
        (*trainer)->PullAsync(row_ids, out.bytes(), {.exact_event = 1});
  }
  EXPECT_EQ(device_->waiting_count(), 0);
  EXPECT_EQ(device_->held_bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeviceMemoryTest,
                         ::testing::Values(Way::kGrpc, Way::kMapped,
                                           Way::kMappedBy, Way::kLinked),
                         [](const auto& way) -> std::string {
                           switch (way.param) {
                             case Way::kGrpc:
                               return "Grpc";
                             case Way::kMapped:
                               return "Mapped";
                             case Way::kMappedBy:
                               return "MappedByTheHost";
                             case Way::kLinked:
                               return "Linked";
                           }
                           return "";
                         });

}  // namespace
}  // namespace rowhouse::testing
