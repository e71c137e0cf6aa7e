// Checkpoints through the library, of real servers in this process.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/checkpoint.h"
#include "rowhouse/cluster.h"
#include "rowhouse/trainer.h"
#include "server/server.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::Random;
using rowhouse::testing::StatusIs;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int32_t kServerCount = 3;
constexpr int64_t kRowCount = 1000;
constexpr int64_t kDim = 8;

/// Three servers that share a directory, and table t on two of them.
class CheckpointGrpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 absl::StrCat("checkpoints-", getpid());
    std::filesystem::create_directories(directory_);
    ClusterOptions options;
    for (int32_t index = 0; index < kServerCount; ++index) {
      config::v1::ServerConfig config;
      config.set_cluster_id("test");
      config.set_server_index(index);
      config.set_server_count(kServerCount);
      config.set_listen_address("127.0.0.1:0");
      config.set_backend("cpu");
      config.set_thread_count(1);
      config.set_memory_limit_bytes(int64_t{1} << 30);
      config.mutable_checkpoint()->set_directory(directory_.string());
      auto server = server::Server::Start(config);
      ASSERT_THAT(server, IsOk());
      servers_.push_back(*std::move(server));
      options.addresses.push_back(servers_.back()->address());
    }
    absl::StatusOr<std::unique_ptr<Cluster>> cluster =
        Cluster::Connect(options);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    checkpoints_ = std::make_unique<Checkpoints>(*cluster_);
    ASSERT_THAT(cluster_->CreateTable("t", Spec(2)), IsOk());
    Join();
  }

  void TearDown() override {
    trainer_.reset();
    cluster_.reset();
    servers_.clear();
    std::filesystem::remove_all(directory_);
  }

  static TableSpec Spec(int32_t shard_count) {
    TableSpec spec;
    spec.row_count = kRowCount;
    spec.dim = kDim;
    spec.gradient_dtype = DType::kFp32;
    spec.shard_count = shard_count;
    spec.initializer = {Initializer::Kind::kUniform, 7, 0.5F};
    spec.gradient_reduction = GradientReduction::kSum;
    spec.max_contribution_row_count = 200;
    spec.max_pull_bytes = 1 << 20;
    return spec;
  }

  void Join() {
    auto trainer = Trainer::Join(*cluster_, "t", 0);
    ASSERT_THAT(trainer, IsOk());
    trainer_ = *std::move(trainer);
  }

  /// Trains table t by one event, which changes the same rows in the same way
  /// whenever it is trained; returns the digest after it.
  TableDigest Train(int64_t event) {
    Random random(static_cast<uint64_t>(event));
    std::vector<int64_t> row_ids;
    std::vector<float> gradients;
    for (int i = 0; i < 50; ++i) {
      row_ids.push_back(random.Integer(0, kRowCount - 1));
      for (int d = 0; d < kDim; ++d) gradients.push_back(random.Normal());
    }
    EXPECT_THAT(
        trainer_->Push(event, row_ids, std::as_bytes(std::span(gradients)),
                       {.seal = true}),
        IsOk());
    EXPECT_THAT(
        trainer_->Commit(
            event, RowAdamScalars{.step_size = 0.1, .beta2 = 0.9, .eps = 1e-6}),
        IsOk());
    const auto digest = cluster_->Digest("t", event);
    EXPECT_THAT(digest, IsOk());
    return digest.value_or(TableDigest());
  }

  absl::StatusOr<PublishedCheckpoint> Write(const CheckpointPlan& plan) {
    absl::StatusOr<std::unique_ptr<CheckpointJob>> job =
        checkpoints_->Start(plan);
    if (!job.ok()) return job.status();
    return (*job)->Await();
  }

  std::filesystem::path directory_;
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<Trainer> trainer_;
};

TEST_F(CheckpointGrpcTest, ATableComesBackOnAnyNumberOfShards) {
  Train(1);
  Train(2);
  const TableDigest digest = Train(3);
  const auto published = Write({"first", {{"t"}}});
  ASSERT_THAT(published, IsOk());
  EXPECT_EQ(published->checkpoint.name, "first");
  ASSERT_THAT(published->checkpoint.tables, SizeIs(1));
  EXPECT_EQ(published->checkpoint.tables[0].event, 3);
  EXPECT_EQ(published->checkpoint.tables[0].spec, Spec(2));
  EXPECT_THAT(checkpoints_->Verify("first"), IsOk());
  trainer_.reset();
  for (int32_t shard_count = 1; shard_count <= kServerCount; ++shard_count) {
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
    CheckpointProgress last;
    const auto tables = checkpoints_->Restore(
        {.name = "first", .shard_count = shard_count},
        {.watcher = [&](const CheckpointProgress& progress) {
          last = progress;
          return true;
        }});
    ASSERT_THAT(tables, IsOk()) << shard_count;
    ASSERT_THAT(*tables, SizeIs(1));
    EXPECT_EQ((*tables)[0].spec, Spec(shard_count));
    EXPECT_EQ((*tables)[0].event, 3);
    EXPECT_GT(last.total_bytes, 0);
    EXPECT_EQ(last.done_bytes, last.total_bytes);
    const auto restored = cluster_->Digest("t");
    ASSERT_THAT(restored, IsOk());
    EXPECT_EQ(*restored, digest) << shard_count << " shards";
  }
}

TEST_F(CheckpointGrpcTest, TrainingGoesOnAndCanBeRepeatedFromThere) {
  Train(1);
  auto job = checkpoints_->Start({"armed", {{"t", 3}}});
  ASSERT_THAT(job, IsOk());
  Train(2);
  const TableDigest at_3 = Train(3);
  const TableDigest at_4 = Train(4);
  const auto published = (*job)->Await();
  ASSERT_THAT(published, IsOk());
  EXPECT_EQ(published->checkpoint.tables[0].event, 3);
  ASSERT_THAT(checkpoints_->Restore({"armed"}), IsOk());
  EXPECT_EQ(*cluster_->Digest("t"), at_3);
  Join();
  EXPECT_EQ(Train(4), at_4);
}

TEST_F(CheckpointGrpcTest, AnEventThatIsPastIsRefused) {
  Train(1);
  Train(2);
  const auto status = checkpoints_->Start({"late", {{"t", 1}}}).status();
  EXPECT_EQ(wire::ReasonOf(status), "EVENT_PAST") << status;
  EXPECT_THAT(*checkpoints_->List(), IsEmpty());
}

TEST_F(CheckpointGrpcTest, AnotherOneOfTheNameLeavesTheFirst) {
  const TableDigest first = Train(1);
  ASSERT_THAT(Write({"c", {{"t"}}}), IsOk());
  Train(2);
  // It is refused before it waits for its event.
  EXPECT_THAT(checkpoints_->Start({"c", {{"t", 1000}}}),
              StatusIs(absl::StatusCode::kAlreadyExists, "and whole"));
  EXPECT_THAT(checkpoints_->Verify("c"), IsOk());
  ASSERT_THAT(checkpoints_->Restore({"c"}), IsOk());
  const auto digest = cluster_->Digest("t");
  ASSERT_THAT(digest, IsOk());
  EXPECT_EQ(digest->digest, first.digest);
}

TEST_F(CheckpointGrpcTest, WhatIsCancelledLeavesNothing) {
  Train(1);
  auto job = checkpoints_->Start({"never", {{"t", 5}}});
  ASSERT_THAT(job, IsOk());
  job->reset();
  EXPECT_THAT(*checkpoints_->List(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  // Neither the shards nor the name are taken.
  EXPECT_THAT(Write({"never", {{"t"}}}), IsOk());
}

TEST_F(CheckpointGrpcTest, CancelledCallsEndAJob) {
  Train(1);
  auto job = checkpoints_->Start({"never", {{"t", 5}}});
  ASSERT_THAT(job, IsOk());
  cluster_->CancelCalls();
  EXPECT_THAT((*job)->Await(), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(CheckpointGrpcTest, ADeltaIsChainedComparedAndCompacted) {
  Train(1);
  ASSERT_THAT(Write({"full", {{"t"}}}), IsOk());
  const TableDigest digest = Train(2);
  const auto delta =
      Write({.name = "delta", .tables = {{"t"}}, .base = "full"});
  ASSERT_THAT(delta, IsOk());
  EXPECT_EQ(delta->checkpoint.base, "full");
  const int64_t changed = delta->checkpoint.tables[0].saved_row_count;
  EXPECT_GT(changed, 0);
  EXPECT_LE(changed, 50);

  const auto diff = checkpoints_->Diff("full", "delta");
  ASSERT_THAT(diff, IsOk());
  ASSERT_THAT(*diff, SizeIs(1));
  EXPECT_EQ((*diff)[0].name, "t");
  EXPECT_EQ((*diff)[0].event, 1);
  EXPECT_EQ((*diff)[0].other_event, 2);
  EXPECT_EQ((*diff)[0].differing_row_count, changed);
  EXPECT_TRUE((*diff)[0].first_differing_row_id.has_value());
  EXPECT_FALSE((*diff)[0].equal());

  EXPECT_THAT(checkpoints_->Delete("full"),
              StatusIs(absl::StatusCode::kFailedPrecondition, "delta"));
  ASSERT_THAT(checkpoints_->Compact("delta", "whole"), IsOk());
  EXPECT_EQ(checkpoints_->Get("whole")->base, "");
  EXPECT_TRUE((*checkpoints_->Diff("delta", "whole"))[0].equal());
  ASSERT_THAT(checkpoints_->Delete("delta"), IsOk());
  ASSERT_THAT(checkpoints_->Delete("full"), IsOk());
  const auto left = checkpoints_->List();
  ASSERT_THAT(left, IsOk());
  ASSERT_THAT(*left, SizeIs(1));
  EXPECT_EQ((*left)[0].name, "whole");
  ASSERT_THAT(checkpoints_->Restore({"whole"}), IsOk());
  EXPECT_EQ(*cluster_->Digest("t"), digest);
}

TEST_F(CheckpointGrpcTest, ItWaitsForTheStatesOfAllTrainers) {
  std::vector<std::byte> state(3 * (1 << 20) + 5);
  Random random(9);
  for (std::byte& byte : state) byte = std::byte(random.Integer(0, 255));
  auto job = checkpoints_->Start(
      {.name = "states", .tables = {{"t"}}, .trainer_state_count = 2});
  ASSERT_THAT(job, IsOk());
  ASSERT_THAT(checkpoints_->PutTrainerState("states", 0, {}), IsOk());
  // The watcher is told before each try to make it whole.
  int after_the_end = 0;
  const auto published =
      (*job)->Await({.watcher = [&](const CheckpointProgress& progress) {
        if (progress.total_bytes > 0 &&
            progress.done_bytes == progress.total_bytes &&
            ++after_the_end == 4) {
          EXPECT_THAT(checkpoints_->PutTrainerState("states", 1, state),
                      IsOk());
        }
        return true;
      }});
  ASSERT_THAT(published, IsOk());
  EXPECT_GE(after_the_end, 4);
  EXPECT_EQ(published->checkpoint.trainer_state_count, 2);
  EXPECT_THAT(*checkpoints_->GetTrainerState("states", 0), IsEmpty());
  EXPECT_EQ(*checkpoints_->GetTrainerState("states", 1), state);
  EXPECT_THAT(checkpoints_->GetTrainerState("states", 2),
              StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_F(CheckpointGrpcTest, AStateThatDoesNotComeEndsIt) {
  auto job = checkpoints_->Start(
      {.name = "states", .tables = {{"t"}}, .trainer_state_count = 1});
  ASSERT_THAT(job, IsOk());
  const auto published = (*job)->Await({.timeout = absl::Seconds(1)});
  EXPECT_EQ(wire::ReasonOf(published.status()), "CHECKPOINT_INCOMPLETE")
      << published.status();
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(CheckpointGrpcTest, ATableThatIsThereKeepsItsShards) {
  ASSERT_THAT(cluster_->CreateTable("u", Spec(1)), IsOk());
  Train(1);
  ASSERT_THAT(Write({"both", {{"t"}, {"u"}}}), IsOk());
  EXPECT_THAT(
      checkpoints_->Restore({.name = "both", .shard_count = 2}),
      StatusIs(absl::StatusCode::kFailedPrecondition, "u has 1 shards"));
  EXPECT_THAT(checkpoints_->Restore({"both", {{"v"}}}),
              StatusIs(absl::StatusCode::kNotFound, "no table v"));
  EXPECT_THAT(checkpoints_->Restore({"both", {{"u"}, {"u"}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "twice"));
  Train(2);
  const auto restored = checkpoints_->Restore({"both", {{"u"}}});
  ASSERT_THAT(restored, IsOk());
  EXPECT_THAT(*restored, SizeIs(1));
  EXPECT_EQ(cluster_->Digest("t")->event, 2) << "not asked for";
  EXPECT_THAT(checkpoints_->Restore({"none"}),
              StatusIs(absl::StatusCode::kNotFound, "none"));
}

}  // namespace
}  // namespace rowhouse::client
