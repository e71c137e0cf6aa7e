// The one-sided path between a client and servers in this process.

#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/internal/grpc_shard_channel.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/lm_head.h"
#include "server/server.h"
#include "tests/server/backends/training.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;
using ::testing::Each;
using ::testing::ElementsAre;

class OneSidedTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve(1); }

  // In place of what was served before.
  void Serve(int32_t count) {
    cluster_.reset();
    servers_.clear();
    addresses_.clear();
    for (int32_t index = 0; index < count; ++index) {
      auto server = server::Server::Start(OneSidedConfig("cpu", index, count));
      ASSERT_THAT(server, IsOk());
      addresses_.push_back((*server)->address());
      servers_.push_back(*std::move(server));
    }
    cluster_ = ConnectTo(addresses_);
  }

  std::unique_ptr<Trainer> Join() { return Join(*cluster_); }
  static std::unique_ptr<Trainer> Join(const client::Cluster& cluster) {
    auto trainer = Trainer::Join(cluster, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }

  int64_t ReservedBytes() const {
    return cluster_->Survey().front().info->reserved_bytes;
  }

  client::internal::OneSidedChannel& channel() { return ChannelOf(*cluster_); }

  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::string> addresses_;
  std::unique_ptr<client::Cluster> cluster_;
};

TEST_F(OneSidedTest, RowsAreReadAndPartsArePushedWithoutTheBulkCalls) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join();
  EXPECT_THAT(*PullFloats(*trainer, {0, 7}), Each(0.0F));
  EXPECT_THAT(ApplyEvent(*trainer, 1, {7, 2}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {7, 0, 2}, {.exact_event = 1}),
              ElementsAre(-1, -1, 0, 0, -1, -1));
  // Rows that lie apart in the caller's order come by way of a copy.
  EXPECT_EQ(channel().pull_count(), 2);
  EXPECT_EQ(channel().push_count(), 1);
  EXPECT_EQ(channel().discarded_count(), 0);
}

TEST_F(OneSidedTest, AClientMayForbidIt) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto other = ConnectTo(addresses_, /*one_sided=*/false);
  const auto trainer = Join(*other);
  EXPECT_THAT(ApplyEvent(*trainer, 1, {3}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {3}), ElementsAre(-1, -1));
  EXPECT_EQ(dynamic_cast<client::internal::OneSidedChannel*>(
                &other->core()->channel(0)),
            nullptr);
}

TEST_F(OneSidedTest, TrainingGivesTheBitsOfGrpc) {
  for (const auto& spec_of : {SparseSpec, DenseSpec}) {
    Serve(2);
    const auto other = ConnectTo(addresses_, /*one_sided=*/false);
    const Outcome wanted = Train(*other, spec_of(2), 4, 11);
    ASSERT_THAT(other->DeleteTable("t"), IsOk());
    ExpectSame(Train(*cluster_, spec_of(2), 4, 11), wanted);
    for (int32_t server = 0; server < 2; ++server) {
      EXPECT_GT(ChannelOf(*cluster_, server).pull_count(), 0);
      EXPECT_GT(ChannelOf(*cluster_, server).push_count(), 0);
    }
  }
}

TEST_F(OneSidedTest, RowsThatChangeUnderAGatherAreThrownAway) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join();
  // Rank 0 works through another client, in the middle of this one's read.
  const std::vector<int64_t> row_ids = {1};
  std::vector<float> out(2);
  ASSERT_THAT(
      cluster_->ReadRows("t", row_ids, std::as_writable_bytes(std::span(out))),
      IsOk());
  int64_t gathers = 0;
  channel().set_after_gather([&] {
    if (++gathers > 1) return;
    EXPECT_THAT(ApplyEvent(*trainer, 1, {1}), IsOk());
  });
  const auto event =
      cluster_->ReadRows("t", row_ids, std::as_writable_bytes(std::span(out)));
  ASSERT_THAT(event, IsOk());
  EXPECT_EQ(*event, 1);
  EXPECT_THAT(out, ElementsAre(-1, -1));
  EXPECT_EQ(gathers, 2);
  EXPECT_EQ(channel().discarded_count(), 1);
  // Who wants the event before gets what the server says of it.
  channel().set_after_gather([&] {
    if (++gathers > 3) return;
    EXPECT_THAT(ApplyEvent(*trainer, 2, {1}), IsOk());
  });
  const auto past = cluster_->ReadRows(
      "t", row_ids, std::as_writable_bytes(std::span(out)), {.exact_event = 1});
  EXPECT_EQ(wire::ReasonOf(past.status()), "EVENT_PAST");
}

TEST_F(OneSidedTest, EventsWithoutPauseEndInTheServersSnapshot) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join();
  int64_t event = 0;
  channel().set_after_gather([&] {
    ++event;
    EXPECT_THAT(ApplyEvent(*trainer, event, {1}), IsOk());
  });
  const std::vector<int64_t> row_ids = {1};
  std::vector<float> out(2);
  const auto read =
      cluster_->ReadRows("t", row_ids, std::as_writable_bytes(std::span(out)));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, event);
  EXPECT_THAT(out, Each(static_cast<float>(-event)));
  EXPECT_EQ(channel().discarded_count(), event);
  EXPECT_EQ(channel().pull_count(), 0);
}

TEST_F(OneSidedTest, AFencedTrainerLearnsItFromItsNextPull) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join();
  ASSERT_THAT(PullFloats(*trainer, {1}), IsOk());
  const auto other = ConnectTo(addresses_);
  const auto successor = Join(*other);
  EXPECT_EQ(wire::ReasonOf(PullFloats(*trainer, {1}).status()), "FENCED");
}

TEST_F(OneSidedTest, ResetAndImportAreSeen) {
  client::TableSpec spec = SmallSpec();
  spec.initializer = {client::Initializer::Kind::kUniform, 3, 0.5F};
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  auto trainer = Join();
  const std::vector<float> first = *PullFloats(*trainer, {0, 5});
  const std::vector<float> rows = {8, 9};
  ASSERT_THAT(cluster_->ImportRows("t", 5, std::as_bytes(std::span(rows))),
              IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {5}), ElementsAre(8, 9));
  ASSERT_THAT(cluster_->ResetTable("t"), IsOk());
  trainer = Join();
  EXPECT_EQ(*PullFloats(*trainer, {0, 5}), first);
  EXPECT_EQ(channel().pull_count(), 3);
}

TEST_F(OneSidedTest, ADeletedTableIsUnmappedAndItsMemoryComesBack) {
  ASSERT_EQ(ReservedBytes(), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
    {
      const auto trainer = Join();
      EXPECT_THAT(ApplyEvent(*trainer, 1, {2}), IsOk());
      EXPECT_THAT(*PullFloats(*trainer, {2}), ElementsAre(-1, -1));
      ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
      EXPECT_THAT(PullFloats(*trainer, {2}),
                  StatusIs(absl::StatusCode::kNotFound, ""));
    }
    while (ReservedBytes() > 0) {
    }
  }
  EXPECT_EQ(channel().pull_count(), 3);
  EXPECT_EQ(channel().push_count(), 3);
}

// A table was made again in another shape, and has a session of the number of
// the one before: who still knows the old shape is told so.
TEST_F(OneSidedTest, ATableOfAnotherShapeIsNeitherReadNorPushed) {
  for (const bool one_sided : {false, true}) {
    SCOPED_TRACE(one_sided ? "one-sided" : "gRPC");
    const auto old = ConnectTo(addresses_, one_sided);
    ASSERT_THAT(old->CreateTable("t", SmallSpec()), IsOk());
    const auto trainer = Join(*old);
    ASSERT_THAT(PullFloats(*trainer, {1}), IsOk());
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
    client::TableSpec wider = SmallSpec();
    wider.dim = 64;
    ASSERT_THAT(cluster_->CreateTable("t", wider), IsOk());
    const auto successor = Join();
    std::vector<float> out(1000, -99);
    EXPECT_THAT(trainer->Pull(std::vector<int64_t>{1},
                              std::as_writable_bytes(std::span(out).first(2))),
                ::testing::Not(IsOk()));
    EXPECT_THAT(std::span(out).subspan(2), Each(-99));
    const std::vector<float> ones(2, 1);
    EXPECT_THAT(trainer->Push(1, std::vector<int64_t>{1},
                              std::as_bytes(std::span(ones))),
                StatusIs(absl::StatusCode::kInvalidArgument, "256"));
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
}

TEST_F(OneSidedTest, AHeadOfAnotherShapeIsRefused) {
  client::TableSpec spec = DenseSpec(1);
  spec.trainer_count = 1;
  spec.dense->max_head_token_count = 8;
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  const auto trainer = Join();
  const auto head = client::LmHead::Create(*trainer);
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  spec.dim *= 2;
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  const auto successor = Join();
  const std::vector<uint16_t> hidden(2 * spec.dim / 2);
  const std::vector<int64_t> targets = {1, 2};
  EXPECT_THAT((*head)->Forward({std::as_bytes(std::span(hidden)),
                                client::DType::kBf16, targets},
                               {.event = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, ""));
}

// To those, too, who had the one before it mapped.
TEST_F(OneSidedTest, ATableMadeAgainIsReadAtOnce) {
  const std::vector<int64_t> row_ids = {1};
  std::vector<float> out(2);
  const auto other = ConnectTo(addresses_);
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_THAT(other->CreateTable("t", SmallSpec()), IsOk());
    EXPECT_THAT(cluster_->ReadRows("t", row_ids,
                                   std::as_writable_bytes(std::span(out))),
                IsOk());
    ASSERT_THAT(other->DeleteTable("t"), IsOk());
  }
}

TEST_F(OneSidedTest, ADrainDoesNotWaitForMappings) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join();
  ASSERT_THAT(PullFloats(*trainer, {1}), IsOk());
  EXPECT_GT(servers_[0]->calls().active_count(), 0);
  const absl::Time start = absl::Now();
  servers_[0]->Drain();
  servers_[0]->Wait();
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));  // The drain's limit: 30.
  EXPECT_EQ(servers_[0]->calls().active_count(), 0);
}

TEST_F(OneSidedTest, AServerThatDoesNotOfferItServesAllTheSame) {
  config::v1::ServerConfig config = OneSidedConfig("cpu");
  config.clear_one_sided();
  const auto server = server::Server::Start(config);
  ASSERT_THAT(server, IsOk());
  const auto cluster = ConnectTo({(*server)->address()});
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join(*cluster);
  EXPECT_THAT(ApplyEvent(*trainer, 1, {3}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {3}), ElementsAre(-1, -1));
  EXPECT_EQ(ChannelOf(*cluster).pull_count(), 0);
  EXPECT_EQ(ChannelOf(*cluster).push_count(), 0);
}

TEST_F(OneSidedTest, PartsThatDoNotFitGoTheOtherWay) {
  config::v1::ServerConfig config = OneSidedConfig("cpu");
  config.mutable_one_sided()->set_max_inbox_bytes(300);
  const auto server = server::Server::Start(config);
  ASSERT_THAT(server, IsOk());
  const auto cluster = ConnectTo({(*server)->address()});
  ASSERT_THAT(cluster->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join(*cluster);
  EXPECT_THAT(ApplyEvent(*trainer, 1, {0, 1, 2, 3, 4, 5, 6, 7}), IsOk());
  EXPECT_EQ(ChannelOf(*cluster).push_count(), 0);
  EXPECT_THAT(ApplyEvent(*trainer, 2, {3}), IsOk());
  EXPECT_EQ(ChannelOf(*cluster).push_count(), 1);
  EXPECT_THAT(*PullFloats(*trainer, {2, 3}), ElementsAre(-1, -1, -2, -2));
}

TEST_F(OneSidedTest, TheLargestContributionFits) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec(100)), IsOk());
  const auto trainer = Join();
  std::vector<int64_t> row_ids(100);
  std::iota(row_ids.begin(), row_ids.end(), 0);
  EXPECT_THAT(ApplyEvent(*trainer, 1, row_ids), IsOk());
  EXPECT_EQ(channel().push_count(), 1);
}

TEST_F(OneSidedTest, BadPartsAreRefusedAsOverGrpc) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {3};
  const std::vector<float> bad = {1, std::numeric_limits<float>::infinity()};
  const auto pushed =
      trainer->Push(1, row_ids, std::as_bytes(std::span(bad)), {.part = 0});
  EXPECT_EQ(wire::ReasonOf(pushed.status()), "NOT_FINITE");
  EXPECT_THAT(std::string(pushed.status().message()),
              ::testing::HasSubstr("column 1"));
  // Nothing has been staged, and the inbox is free again.
  const std::vector<float> good = {1, 1};
  const auto bytes = std::as_bytes(std::span(good));
  EXPECT_THAT(trainer->Push(1, row_ids, bytes, {.part = 0}), IsOk());
  const auto again = trainer->Push(1, row_ids, bytes, {.part = 0});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->duplicate);
  const auto ahead = trainer->Push(9, row_ids, bytes);
  EXPECT_EQ(wire::ReasonOf(ahead.status()), "EVENT_AHEAD");
  EXPECT_EQ(channel().push_count(), 2);
}

// All rows move by -1 at every event: a read that shows two events is seen.
TEST_F(OneSidedTest, ReadsUnderEventsShowOneEventEach) {
  constexpr int64_t kRows = 4000;
  constexpr int64_t kEvents = 60;
  client::TableSpec spec = SmallSpec(kRows);
  spec.dim = 32;
  spec.max_contribution_row_count = kRows;
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  const auto trainer = Join();
  std::vector<int64_t> row_ids(kRows);
  std::iota(row_ids.begin(), row_ids.end(), 0);
  std::jthread training([&] {
    for (int64_t event = 1; event <= kEvents; ++event) {
      EXPECT_THAT(ApplyEvent(*trainer, event, row_ids), IsOk());
    }
  });
  const auto reader = ConnectTo(addresses_);
  std::vector<float> rows(kRows * 32);
  int64_t event = 0;
  while (event < kEvents && !HasFailure()) {
    const auto read =
        reader->ReadRows("t", row_ids, std::as_writable_bytes(std::span(rows)));
    ASSERT_THAT(read, IsOk());
    ASSERT_GE(*read, event);
    event = *read;
    ASSERT_EQ(rows, std::vector<float>(rows.size(), -static_cast<float>(event)))
        << "event " << event;
  }
  training.join();
  EXPECT_GT(ChannelOf(*reader).pull_count(), 0);
}

// Maps nothing, as where a handle names memory that cannot be reached.
TEST_F(OneSidedTest, MemoryThatCannotBeMappedIsReadOverGrpc) {
  int64_t asked = 0;
  const auto channel =
      grpc::CreateChannel(addresses_[0], grpc::InsecureChannelCredentials());
  client::internal::OneSidedChannel one_sided(
      client::internal::MakeGrpcShardChannel(addresses_[0], {channel}), channel,
      [&](std::string_view kind)
          -> absl::StatusOr<std::shared_ptr<kernels::Backend>> {
        EXPECT_EQ(kind, "cpu");
        ++asked;
        return absl::NotFoundError("it is out of reach");
      });
  ASSERT_THAT(one_sided.CreateTable("t", SmallSpec(), {}), IsOk());
  const std::vector<int64_t> row_ids = {1, 2};
  for (int i = 0; i < 3; ++i) {
    std::string rows;
    const auto pulled =
        one_sided.Pull({.table = "t", .row_ids = row_ids, .row_bytes = 8},
                       [&](int64_t, const kernels::HostPieces& some) {
                         for (auto piece : some.pieces()) rows += piece;
                         return absl::OkStatus();
                       },
                       {});
    ASSERT_THAT(pulled, IsOk());
    EXPECT_EQ(rows, std::string(16, '\0'));
  }
  EXPECT_EQ(one_sided.pull_count(), 0);
  EXPECT_EQ(asked, 1);  // Not in vain again and again.
}

}  // namespace
}  // namespace rowhouse::testing
