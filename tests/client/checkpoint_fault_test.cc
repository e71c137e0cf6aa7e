// Checkpoints through the library, of servers that do what a test says.

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/reasons.h"
#include "rowhouse/checkpoint.h"
#include "rowhouse/cluster.h"
#include "tests/client/fake_checkpoints.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::FakeCheckpointServer;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using WriteStream = grpc::ServerWriter<v1::WriteCheckpointResponse>;

template <typename Response>
void Tell(grpc::ServerWriter<Response>& writer, int64_t done, int64_t total) {
  Response response;
  response.mutable_progress()->set_done_bytes(done);
  response.mutable_progress()->set_total_bytes(total);
  response.mutable_progress()->set_before_image_row_count(1);
  response.mutable_progress()->mutable_event_wait_duration()->set_seconds(2);
  writer.Write(response);
}

// Says that it is armed, and goes on until the client cancels.
absl::Status ArmForEver(grpc::ServerContext& context, WriteStream& writer) {
  Tell(writer, 0, 0);
  while (!context.IsCancelled()) Tell(writer, 0, 0);
  return absl::CancelledError("cancelled");
}

absl::Status Incomplete() {
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kCheckpointIncomplete, "rank 1 is missing");
}

class CheckpointFaultTest : public ::testing::Test {
 protected:
  void Connect() {
    ClusterOptions options;
    options.addresses = {first_.address(), second_.address()};
    options.check_servers = false;
    options.one_sided.allow = false;
    options.nccl.allow = false;
    options.retry.initial_backoff = absl::Milliseconds(1);
    auto cluster = Cluster::Connect(options);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    checkpoints_ = std::make_unique<Checkpoints>(*cluster_);
  }

  absl::StatusOr<PublishedCheckpoint> Write(
      const CheckpointCallOptions& options = {}, int32_t state_count = 0) {
    auto job = checkpoints_->Start({.name = "c",
                                    .tables = {{"t", 9}, {"u"}},
                                    .base = "b",
                                    .trainer_state_count = state_count});
    if (!job.ok()) return job.status();
    return (*job)->Await(options);
  }

  FakeCheckpointServer first_{0};
  FakeCheckpointServer second_{1};
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Checkpoints> checkpoints_;
};

TEST_F(CheckpointFaultTest, EveryServerIsToldThePlan) {
  Connect();
  ASSERT_THAT(Write(), IsOk());
  for (const FakeCheckpointServer* server : {&first_, &second_}) {
    const v1::WriteCheckpointRequest request = server->write_request();
    EXPECT_EQ(request.name(), "checkpoints/c");
    EXPECT_EQ(request.base(), "checkpoints/b");
    ASSERT_EQ(request.tables_size(), 2);
    EXPECT_EQ(request.tables(0).name(), "tables/t");
    EXPECT_EQ(request.tables(0).event(), 9);
    EXPECT_EQ(request.tables(1).name(), "tables/u");
    EXPECT_EQ(request.tables(1).event(), 7) << "where its shards are";
  }
  EXPECT_THAT(first_.calls(),
              ElementsAre("write checkpoints/c", "publish checkpoints/c"));
  EXPECT_THAT(second_.calls(), ElementsAre("write checkpoints/c"));
}

TEST_F(CheckpointFaultTest, ItHasStartedWhenAllServersAreArmed) {
  absl::Notification first_told;
  std::atomic<bool> second_told = false;
  first_.write = [&](grpc::ServerContext& context, WriteStream& writer) {
    Tell(writer, 0, 0);
    first_told.Notify();
    return ArmForEver(context, writer);
  };
  second_.write = [&](grpc::ServerContext& context, WriteStream& writer) {
    first_told.WaitForNotification();
    second_told = true;
    return ArmForEver(context, writer);
  };
  Connect();
  const auto job = checkpoints_->Start({"c", {{"t"}}});
  ASSERT_THAT(job, IsOk());
  EXPECT_TRUE(second_told);
}

TEST_F(CheckpointFaultTest, ProgressIsTheSumOnceAllHaveTold) {
  absl::Notification half;
  first_.write = [](grpc::ServerContext&, WriteStream& writer) {
    Tell(writer, 3, 10);
    return absl::OkStatus();
  };
  second_.write = [&](grpc::ServerContext&, WriteStream& writer) {
    Tell(writer, 2, 0);
    half.WaitForNotification();
    Tell(writer, 4, 5);
    return absl::OkStatus();
  };
  Connect();
  std::vector<int64_t> totals;
  CheckpointProgress last;
  ASSERT_THAT(Write({.watcher =
                         [&](const CheckpointProgress& progress) {
                           totals.push_back(progress.total_bytes);
                           last = progress;
                           if (!half.HasBeenNotified()) half.Notify();
                           return true;
                         }}),
              IsOk());
  EXPECT_EQ(totals.front(), 0);
  EXPECT_EQ(totals.back(), 15);
  EXPECT_EQ(last.done_bytes, 7);
  EXPECT_EQ(last.before_image_row_count, 2);
  EXPECT_EQ(last.event_wait, absl::Seconds(4));
}

TEST_F(CheckpointFaultTest, AServerThatGoesAwayEndsItAndIsNamed) {
  absl::Notification first_called;
  first_.write = [&](grpc::ServerContext& context, WriteStream& writer) {
    first_called.Notify();
    return ArmForEver(context, writer);
  };
  second_.write = [&](grpc::ServerContext&, WriteStream& writer) {
    first_called.WaitForNotification();
    Tell(writer, 0, 0);
    return absl::UnavailableError("the connection broke");
  };
  Connect();
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kUnavailable,
                                second_.address() + ": the connection broke"));
  EXPECT_THAT(first_.calls(), ElementsAre("write checkpoints/c",
                                          "delete unfinished checkpoints/c"));
  EXPECT_THAT(second_.calls(), ElementsAre("write checkpoints/c"))
      << "it is not resumed";
}

TEST_F(CheckpointFaultTest, AnotherCheckpointOfTheNameIsNotTouched) {
  const auto refuse = [](grpc::ServerContext&, WriteStream&) {
    return wire::Error(absl::StatusCode::kAlreadyExists,
                       wire::reasons::kCheckpointExists, "c is there");
  };
  first_.write = refuse;
  second_.write = refuse;
  Connect();
  EXPECT_THAT(Write(),
              StatusIs(absl::StatusCode::kAlreadyExists, "c is there"));
  EXPECT_THAT(first_.calls(), Not(Contains("delete unfinished checkpoints/c")));
}

TEST_F(CheckpointFaultTest, AnEventThatWentByMeanwhileIsExplained) {
  first_.write = ArmForEver;
  second_.write = [](grpc::ServerContext&, WriteStream&) {
    return wire::Error(absl::StatusCode::kFailedPrecondition,
                       wire::reasons::kEventPast, "event 8");
  };
  Connect();
  const auto status = Write().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               "name an event that they have not reached"));
  EXPECT_EQ(wire::ReasonOf(status), wire::reasons::kEventPast);
  const auto named = checkpoints_->Start({"c", {{"t", 7}}}).status();
  EXPECT_EQ(named.message(), second_.address() + ": event 8");
}

TEST_F(CheckpointFaultTest, AShardThatIsWritingAnotherOneIsWaitedFor) {
  int left = 3;
  second_.write = [&](grpc::ServerContext&, WriteStream& writer) {
    if (--left > 0) {
      return wire::Error(absl::StatusCode::kResourceExhausted,
                         wire::reasons::kCheckpointsOpen, "another one", {},
                         absl::Milliseconds(1));
    }
    Tell(writer, 1, 1);
    return absl::OkStatus();
  };
  Connect();
  EXPECT_THAT(Write(), IsOk());
  EXPECT_EQ(left, 0);
}

TEST_F(CheckpointFaultTest, TheWatcherCancelsIt) {
  first_.write = ArmForEver;
  second_.write = ArmForEver;
  Connect();
  EXPECT_THAT(
      Write({.watcher = [](const CheckpointProgress&) { return false; }}),
      StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(first_.calls(), Contains("delete unfinished checkpoints/c"));
}

TEST_F(CheckpointFaultTest, TimeRunsOut) {
  first_.write = ArmForEver;
  Connect();
  EXPECT_THAT(Write({.timeout = absl::Milliseconds(50)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(first_.calls(), Contains("delete unfinished checkpoints/c"));
}

TEST_F(CheckpointFaultTest, PublishingWaitsForTrainersOnly) {
  int left = 3;
  first_.publish = [&] { return --left > 0 ? Incomplete() : absl::OkStatus(); };
  Connect();
  EXPECT_THAT(Write({}, 2), IsOk());
  EXPECT_EQ(left, 0);
  left = 3;
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                "rank 1 is missing"));
  EXPECT_EQ(left, 2) << "there is nothing to wait for";
}

TEST_F(CheckpointFaultTest, WhatMayBeWholeIsNotDeleted) {
  first_.publish = [] { return absl::UnknownError("lost"); };
  first_.write = [](grpc::ServerContext&, WriteStream& writer) {
    Tell(writer, 1, 1);
    return absl::OkStatus();
  };
  Connect();
  EXPECT_THAT(Write(), StatusIs(absl::StatusCode::kUnknown, first_.address()));
  EXPECT_THAT(first_.calls(),
              AllOf(Contains("publish checkpoints/c"),
                    Not(Contains("delete unfinished checkpoints/c"))));
}

TEST_F(CheckpointFaultTest, StatesTravelInPiecesAndAreRepeated) {
  int left = 2;
  first_.put_state = [&] {
    return --left > 0 ? absl::UnavailableError("lost") : absl::OkStatus();
  };
  Connect();
  const std::vector<std::byte> state((1 << 20) + 3);
  ASSERT_THAT(checkpoints_->PutTrainerState("c", 5, state), IsOk());
  EXPECT_THAT(first_.calls(),
              ElementsAre("put checkpoints/c of rank 5: 1048576 3",
                          "put checkpoints/c of rank 5: 1048576 3"));
  ASSERT_THAT(checkpoints_->PutTrainerState("c", 6, {}), IsOk());
  EXPECT_EQ(first_.calls().back(), "put checkpoints/c of rank 6: 0");
}

TEST_F(CheckpointFaultTest, ALongReadIsMadeOnce) {
  first_.verify = [](grpc::ServerContext&,
                     grpc::ServerWriter<v1::VerifyCheckpointResponse>& writer) {
    Tell(writer, 1, 2);
    return absl::UnavailableError("the connection broke");
  };
  Connect();
  EXPECT_THAT(checkpoints_->Verify("c"),
              StatusIs(absl::StatusCode::kUnavailable, first_.address()));
  EXPECT_THAT(first_.calls(), ElementsAre("verify checkpoints/c"));
}

}  // namespace
}  // namespace rowhouse::client
