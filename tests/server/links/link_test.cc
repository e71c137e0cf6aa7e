// Links between a client and servers in this process.

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "client/internal/grpc_shard_channel.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "kernels/peer_link.h"
#include "proto/wire/error.h"
#include "proto/wire/status.h"
#include "rowhouse/v1/transport_service.grpc.pb.h"
#include "server/server.h"
#include "tests/server/backends/training.h"
#include "tests/server/links/link_cluster.h"
#include "tests/server/one_sided/head_outcome.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;
using client::internal::ServerLink;
using ::testing::Each;
using ::testing::ElementsAre;

class LinkTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve({LinkConfig("cpu")}); }

  // In place of what was served before.
  void Serve(const std::vector<config::v1::ServerConfig>& configs) {
    cluster_.reset();
    servers_.clear();
    addresses_.clear();
    for (const config::v1::ServerConfig& config : configs) {
      auto server = server::Server::Start(config);
      ASSERT_THAT(server, IsOk());
      addresses_.push_back((*server)->address());
      servers_.push_back(*std::move(server));
    }
    cluster_ = LinkTo(addresses_);
  }

  std::unique_ptr<Trainer> MakeTable(const client::TableSpec& spec) {
    EXPECT_THAT(cluster_->CreateTable("t", spec), IsOk());
    auto trainer = Trainer::Join(*cluster_, "t", 0);
    EXPECT_THAT(trainer, IsOk());
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }

  int64_t ReservedBytes() const {
    return servers_[0]->tables().reserved_bytes();
  }

  client::internal::LinkChannel& channel() { return LinksOf(*cluster_); }

  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<std::string> addresses_;
  std::unique_ptr<client::Cluster> cluster_;
};

TEST_F(LinkTest, RowsAndPartsGoWithoutTheBulkCalls) {
  const auto trainer = MakeTable(SmallSpec());
  EXPECT_THAT(*PullFloats(*trainer, {0, 7}), Each(0.0F));
  EXPECT_THAT(ApplyEvent(*trainer, 1, {7, 2}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {7, 0, 2}, {.exact_event = 1}),
              ElementsAre(-1, -1, 0, 0, -1, -1));
  EXPECT_EQ(channel().pull_count(), 2);
  EXPECT_EQ(channel().push_count(), 1);
  EXPECT_EQ(channel().failed_count(), 0);
}

TEST_F(LinkTest, AClientMayForbidThem) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec()), IsOk());
  const auto other = ConnectTo(addresses_, /*one_sided=*/false);
  EXPECT_EQ(
      dynamic_cast<client::internal::LinkChannel*>(&other->core()->channel(0)),
      nullptr);
}

TEST_F(LinkTest, AServerMayOfferNone) {
  config::v1::ServerConfig config = LinkConfig("cpu");
  config.clear_nccl();
  Serve({config});
  const auto trainer = MakeTable(SmallSpec());
  EXPECT_THAT(ApplyEvent(*trainer, 1, {3}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {3}), ElementsAre(-1, -1));
  EXPECT_EQ(channel().pull_count(), 0);
  EXPECT_EQ(channel().failed_count(), 0);
}

TEST_F(LinkTest, RowsLargerThanAPieceGoOverGrpc) {
  client::TableSpec spec = SmallSpec();
  spec.dim = 251;
  const auto trainer = MakeTable(spec);
  EXPECT_THAT(ApplyEvent(*trainer, 1, {3}), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, {3}), Each(-1.0F));
  EXPECT_EQ(channel().pull_count(), 0);
  EXPECT_EQ(channel().push_count(), 0);
  EXPECT_EQ(channel().failed_count(), 0);
}

TEST_F(LinkTest, TrainingGivesTheBitsOfGrpc) {
  for (const auto& spec_of : {SparseSpec, DenseSpec}) {
    Serve({LinkConfig("cpu", 0, 2), LinkConfig("cpu", 1, 2)});
    const auto other = ConnectTo(addresses_, /*one_sided=*/false);
    const Outcome wanted = Train(*other, spec_of(2), 4, 11);
    ASSERT_THAT(other->DeleteTable("t"), IsOk());
    ExpectSame(Train(*cluster_, spec_of(2), 4, 11), wanted);
    for (int32_t server = 0; server < 2; ++server) {
      EXPECT_GT(LinksOf(*cluster_, server).pull_count(), 0);
      EXPECT_GT(LinksOf(*cluster_, server).push_count(), 0);
      EXPECT_EQ(LinksOf(*cluster_, server).failed_count(), 0);
    }
  }
}

TEST_F(LinkTest, HeadCallsGiveTheBitsOfGrpc) {
  Serve({LinkConfig("cpu", 0, 2), LinkConfig("cpu", 1, 2)});
  const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
  const HeadOutcome wanted = RunHead(*plain);
  ASSERT_THAT(plain->DeleteTable("t"), IsOk());
  const auto cluster = LinkTo(addresses_);
  ExpectSame(RunHead(*cluster), wanted);
  for (int32_t server = 0; server < 2; ++server) {
    EXPECT_EQ(LinksOf(*cluster, server).head_count(), 2);
  }
}

TEST_F(LinkTest, AHeadCallWhoseLinkFailsIsMadeAgain) {
  Serve({LinkConfig("cpu", 0, 2), LinkConfig("cpu", 1, 2)});
  const auto plain = ConnectTo(addresses_, /*one_sided=*/false);
  const HeadOutcome wanted = RunHead(*plain);
  ASSERT_THAT(plain->DeleteTable("t"), IsOk());
  for (int32_t server = 0; server < 2; ++server) {
    LinksOf(*cluster_, server).set_on_transfer([](ServerLink& link) {
      link.Break();
    });
  }
  ExpectSame(RunHead(*cluster_), wanted);
  for (int32_t server = 0; server < 2; ++server) {
    EXPECT_EQ(LinksOf(*cluster_, server).head_count(), 1);
  }
}

TEST_F(LinkTest, APartThatIsRefusedLeavesTheLinkOfUse) {
  const auto trainer = MakeTable(SmallSpec(1000));
  // 200 rows are two pieces; the first is bad.
  std::vector<int64_t> row_ids(100);
  std::vector<float> rows(200, 1.0F);
  for (size_t i = 0; i < row_ids.size(); ++i) row_ids[i] = int64_t(i);
  rows[3] = std::numeric_limits<float>::infinity();
  const auto refused =
      trainer->Push(1, row_ids, std::as_bytes(std::span(rows)));
  EXPECT_EQ(wire::ReasonOf(refused.status()), "NOT_FINITE");
  EXPECT_THAT(ApplyEvent(*trainer, 1, row_ids), IsOk());
  EXPECT_THAT(*PullFloats(*trainer, row_ids), Each(-1.0F));
  EXPECT_EQ(channel().push_count(), 1);
  EXPECT_EQ(channel().pull_count(), 1);
  EXPECT_EQ(channel().failed_count(), 0);
}

TEST_F(LinkTest, WhatTheServerRefusesItSays) {
  const auto trainer = MakeTable(SmallSpec());
  EXPECT_THAT(ApplyEvent(*trainer, 1, {3}), IsOk());
  const auto past = PullFloats(*trainer, {3}, {.exact_event = 0});
  EXPECT_EQ(wire::ReasonOf(past.status()), "EVENT_PAST");
  EXPECT_THAT(*PullFloats(*trainer, {3}), ElementsAre(-1, -1));
  EXPECT_EQ(channel().pull_count(), 1);
}

TEST_F(LinkTest, ALinkThatFailsInATransferIsGoneAroundWithTheSameBits) {
  const auto trainer = MakeTable(SmallSpec(1000));
  std::vector<int64_t> row_ids(100);
  for (size_t i = 0; i < row_ids.size(); ++i) row_ids[i] = int64_t(9 * i);
  channel().set_on_transfer([](ServerLink& link) { link.Break(); });
  EXPECT_THAT(ApplyEvent(*trainer, 1, row_ids), IsOk());
  EXPECT_EQ(channel().push_count(), 0);
  EXPECT_EQ(channel().failed_count(), 1);
  EXPECT_THAT(*PullFloats(*trainer, row_ids), Each(-1.0F));
  // It is made anew after a while, and fails in a pull then.
  while (channel().failed_count() == 1) {
    EXPECT_THAT(*PullFloats(*trainer, row_ids), Each(-1.0F));
  }
  EXPECT_EQ(channel().pull_count(), 0);
  channel().set_on_transfer(nullptr);
  while (channel().pull_count() == 0) {
    EXPECT_THAT(*PullFloats(*trainer, row_ids), Each(-1.0F));
  }
}

TEST_F(LinkTest, RowsThatLieApartComeAgainWhenALinkFails) {
  Serve({LinkConfig("cpu", 0, 2), LinkConfig("cpu", 1, 2)});
  const auto trainer = MakeTable(SmallSpec(1000, 2));
  std::vector<int64_t> row_ids(200);
  for (size_t i = 0; i < row_ids.size(); ++i) {
    row_ids[i] = int64_t(i % 2 * 500 + i);
  }
  EXPECT_THAT(ApplyEvent(*trainer, 1, {row_ids.begin(), row_ids.begin() + 100}),
              IsOk());
  LinksOf(*cluster_, 1).set_on_transfer([](ServerLink& link) { link.Break(); });
  const auto rows = PullFloats(*trainer, row_ids);
  ASSERT_THAT(rows, IsOk());
  for (size_t i = 0; i < rows->size(); ++i) {
    ASSERT_EQ((*rows)[i], i < 200 ? -1.0F : 0.0F) << i;
  }
  EXPECT_EQ(LinksOf(*cluster_, 0).pull_count(), 1);
  EXPECT_EQ(LinksOf(*cluster_, 1).pull_count(), 0);
  EXPECT_EQ(LinksOf(*cluster_, 1).failed_count(), 1);
}

TEST_F(LinkTest, ManyCallsAtOnceTakeTheirTurns) {
  const auto trainer = MakeTable(SmallSpec(1000));
  std::vector<int64_t> row_ids(100);
  for (size_t i = 0; i < row_ids.size(); ++i) row_ids[i] = int64_t(i);
  ASSERT_THAT(ApplyEvent(*trainer, 1, row_ids), IsOk());
  {
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 4; ++reader) {
      readers.emplace_back([&] {
        std::vector<float> rows(200);
        for (int i = 0; i < 50; ++i) {
          EXPECT_THAT(
              cluster_->ReadRows("t", row_ids,
                                 std::as_writable_bytes(std::span(rows))),
              IsOk());
          EXPECT_THAT(rows, Each(-1.0F));
        }
      });
    }
    std::vector<int64_t> others(100);
    for (size_t i = 0; i < others.size(); ++i) others[i] = 500 + int64_t(i);
    for (int64_t event = 2; event < 6; ++event) {
      EXPECT_THAT(ApplyEvent(*trainer, event, others), IsOk());
    }
  }
  EXPECT_EQ(channel().pull_count(), 200);
  EXPECT_EQ(channel().push_count(), 5);
  EXPECT_EQ(channel().failed_count(), 0);
}

TEST_F(LinkTest, ItsMemoryIsGivenBackWithIt) {
  const auto trainer = MakeTable(SmallSpec());
  const int64_t before = ReservedBytes();
  EXPECT_THAT(*PullFloats(*trainer, {0}), Each(0.0F));
  EXPECT_EQ(ReservedBytes(), before + 3 * 1000);
  channel().set_on_transfer([](ServerLink& link) { link.Break(); });
  EXPECT_THAT(*PullFloats(*trainer, {0}), Each(0.0F));
  while (ReservedBytes() > before) {
  }
}

TEST_F(LinkTest, ADrainEndsThem) {
  const auto trainer = MakeTable(SmallSpec());
  EXPECT_THAT(*PullFloats(*trainer, {0}), Each(0.0F));
  servers_[0]->Drain();
  servers_[0]->Wait();
  EXPECT_EQ(channel().failed_count(), 0);
}

// With stubs of its own: a client that is accepted, and does what it should
// not.
class LinkServiceTest : public LinkTest {
 protected:
  using Stream =
      grpc::ClientReaderWriter<v1::OpenLinkRequest, v1::OpenLinkResponse>;

  void SetUp() override { Open(LinkConfig("cpu")); }

  void Open(const config::v1::ServerConfig& config) {
    stream_.reset();
    context_ = std::make_unique<grpc::ClientContext>();
    Serve({config});
    stub_ = v1::TransportService::NewStub(
        grpc::CreateChannel(addresses_[0], grpc::InsecureChannelCredentials()));
    stream_ = stub_->OpenLink(context_.get());
    stream_->Write(v1::OpenLinkRequest());
    ASSERT_TRUE(stream_->Read(&accepted_));
    EXPECT_EQ(accepted_.backend(), "cpu");
    EXPECT_EQ(accepted_.block_bytes(), 1000);
  }

  void Join() {
    auto peer = kernels::MakePeerLink({});
    ASSERT_THAT(peer, IsOk());
    peer_ = *std::move(peer);
    v1::OpenLinkRequest request;
    request.set_id(*peer_->NewId());
    stream_->Write(request);
    ASSERT_THAT(peer_->Connect(request.id(), kernels::LinkEnd::kFirst,
                               absl::InfiniteFuture()),
                IsOk());
    v1::OpenLinkResponse joined;
    ASSERT_TRUE(stream_->Read(&joined));
    EXPECT_TRUE(joined.joined());
  }

  absl::Status Ended() {
    v1::OpenLinkResponse rest;
    EXPECT_FALSE(stream_->Read(&rest));
    return wire::FromGrpc(stream_->Finish());
  }

  v1::PullLinkResponse Pull(const std::vector<int64_t>& row_ids) {
    v1::PullLinkRequest request;
    request.set_link(accepted_.link());
    request.mutable_pull()->set_table("tables/t");
    request.mutable_pull()->mutable_row_ids()->Add(row_ids.begin(),
                                                   row_ids.end());
    grpc::ClientContext context;
    v1::PullLinkResponse response;
    EXPECT_THAT(wire::FromGrpc(stub_->PullLink(&context, request, &response)),
                IsOk());
    return response;
  }

  std::unique_ptr<v1::TransportService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<Stream> stream_;
  v1::OpenLinkResponse accepted_;
  std::unique_ptr<kernels::PeerLink> peer_;
};

TEST_F(LinkServiceTest, AnIdOfNoLinkIsRefused) {
  v1::OpenLinkRequest request;
  request.set_id("no id");
  stream_->Write(request);
  EXPECT_THAT(Ended(), StatusIs(absl::StatusCode::kInvalidArgument, "name"));
}

TEST_F(LinkServiceTest, AMissingIdIsRefused) {
  stream_->Write(v1::OpenLinkRequest());
  EXPECT_THAT(Ended(), StatusIs(absl::StatusCode::kInvalidArgument, "id"));
}

TEST_F(LinkServiceTest, AClientThatTakesNoRowsLosesItsLinkAndNothingWaits) {
  config::v1::ServerConfig config = LinkConfig("cpu");
  config.mutable_nccl()->mutable_stall_timeout_duration()->set_nanos(
      100'000'000);
  Open(config);
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec(100'000)), IsOk());
  Join();
  // More than the socket holds.
  const v1::PullLinkResponse answer = Pull(std::vector<int64_t>(100'000, 1));
  EXPECT_EQ(answer.turn(), 1);
  EXPECT_EQ(answer.row_count(), 100'000);
  EXPECT_EQ(answer.row_bytes(), 8);
  const auto trainer = Trainer::Join(*cluster_, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  EXPECT_THAT(ApplyEvent(**trainer, 1, {1}), IsOk());
  EXPECT_THAT(Ended(), StatusIs(absl::StatusCode::kDeadlineExceeded, "time"));
}

// The event comes between the first piece and the last.
TEST_F(LinkServiceTest, RowsOfASlowTransferAreOfOneEvent) {
  ASSERT_THAT(cluster_->CreateTable("t", SmallSpec(100'000)), IsOk());
  Join();
  constexpr int64_t kRows = 100'000;
  ASSERT_EQ(Pull(std::vector<int64_t>(kRows, 1)).row_count(), kRows);
  const auto trainer = Trainer::Join(*cluster_, "t", 0);
  ASSERT_THAT(trainer, IsOk());
  std::vector<float> rows(2 * kRows, -99);
  auto* to = reinterpret_cast<std::byte*>(rows.data());
  // A stream of bytes, however it is cut.
  ASSERT_THAT(peer_->Receive(to, 1000, absl::InfiniteFuture()), IsOk());
  ASSERT_THAT(ApplyEvent(**trainer, 1, {1}), IsOk());
  ASSERT_THAT(
      peer_->Receive(to + 1000, 8 * kRows - 1000, absl::InfiniteFuture()),
      IsOk());
  EXPECT_THAT(rows, Each(0.0F));
}

TEST_F(LinkServiceTest, LinksThatAreNotThereAreRefused) {
  v1::PullLinkRequest request;
  request.set_link(accepted_.link() + 1);
  grpc::ClientContext context;
  v1::PullLinkResponse response;
  EXPECT_EQ(wire::ReasonOf(
                wire::FromGrpc(stub_->PullLink(&context, request, &response))),
            "LINK_GONE");
  v1::PushLinkRequest push;
  push.set_link(accepted_.link() + 1);
  grpc::ClientContext push_context;
  const auto reader = stub_->PushLink(&push_context, push);
  v1::PushLinkResponse answer;
  EXPECT_FALSE(reader->Read(&answer));
  EXPECT_EQ(wire::ReasonOf(wire::FromGrpc(reader->Finish())), "LINK_GONE");
}

}  // namespace
}  // namespace rowhouse::testing
