// What a client tells its observer of the calls to shards, over either path.

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/mutex.h"
#include "server/server.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Path;
using client::Span;
using client::Stage;
using client::Trainer;
using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

// Two servers, table `t` of rows [0, 4) and [4, 8).
class ObserverTest : public ::testing::TestWithParam<Path> {
 protected:
  // A span without its times.
  struct Told {
    Stage stage;
    int32_t shard;
    int64_t event;
    int64_t row_count;
    Path path;
  };

  void SetUp() override {
    std::vector<std::string> addresses;
    for (int32_t index = 0; index < 2; ++index) {
      auto server = server::Server::Start(OneSidedConfig("cpu", index, 2));
      ASSERT_THAT(server, IsOk());
      addresses.push_back((*server)->address());
      servers_.push_back(*std::move(server));
    }
    cluster_ = ConnectTo(addresses, GetParam() == Path::kOneSided, std::nullopt,
                         [this](const Span& span) { Note(span); });
    ASSERT_THAT(cluster_->CreateTable("t", SmallSpec(8, 2)), IsOk());
    auto trainer = Trainer::Join(*cluster_, "t", 0);
    ASSERT_THAT(trainer, IsOk());
    trainer_ = *std::move(trainer);
  }

  void Note(const Span& span) {
    EXPECT_LE(span.begin, span.end);
    MutexLock lock(mutex_);
    spans_.push_back(span);
    noted_.SignalAll();
  }

  // Waits until so many spans of a stage have been told: an event may be seen
  // to be applied before the answer to its commit.
  void Await(Stage stage, int64_t count) {
    const auto limit =
        std::chrono::system_clock::now() + std::chrono::seconds(10);
    const auto is_of = [stage](const Span& span) {
      return span.stage == stage;
    };
    MutexLock lock(mutex_);
    while (std::count_if(spans_.begin(), spans_.end(), is_of) < count) {
      ASSERT_LT(std::chrono::system_clock::now(), limit);
      noted_.WaitUntil(mutex_, limit);
    }
  }

  // Of the shards in turn; of one, in order of time.
  std::vector<Span> Spans(Stage stage) {
    MutexLock lock(mutex_);
    std::vector<Span> spans;
    for (const Span& span : spans_) {
      if (span.stage == stage) spans.push_back(span);
    }
    std::stable_sort(
        spans.begin(), spans.end(),
        [](const Span& a, const Span& b) { return a.shard < b.shard; });
    return spans;
  }

  std::vector<Told> TheTold(Stage stage) {
    std::vector<Told> told;
    for (const Span& span : Spans(stage)) {
      told.push_back(
          {span.stage, span.shard, span.event, span.row_count, span.path});
    }
    return told;
  }

  std::vector<std::unique_ptr<server::Server>> servers_;
  std::unique_ptr<client::Cluster> cluster_;
  std::unique_ptr<Trainer> trainer_;
  Mutex mutex_;
  CondVar noted_;
  std::vector<Span> spans_ ABSL_GUARDED_BY(mutex_);
};

TEST_P(ObserverTest, APullIsToldInItsPartsByShard) {
  ASSERT_THAT(PullFloats(*trainer_, {1, 2, 6}), IsOk());
  for (const Stage stage : {Stage::kAwaitRows, Stage::kTakeRows}) {
    EXPECT_THAT(TheTold(stage),
                ElementsAre(FieldsAre(stage, 0, 0, 2, GetParam()),
                            FieldsAre(stage, 1, 0, 1, GetParam())));
  }
  const std::vector<Span> sent = Spans(Stage::kSendIds);
  const std::vector<Span> awaited = Spans(Stage::kAwaitRows);
  const std::vector<Span> taken = Spans(Stage::kTakeRows);
  for (size_t shard = 0; shard < 2; ++shard) {
    EXPECT_EQ(awaited[shard].end, taken[shard].begin);
  }
  if (GetParam() == Path::kOneSided) {
    EXPECT_THAT(sent, IsEmpty());  // No ids travel.
    return;
  }
  ASSERT_EQ(sent.size(), 2);
  for (size_t shard = 0; shard < 2; ++shard) {
    EXPECT_EQ(sent[shard].row_count, awaited[shard].row_count);
    EXPECT_EQ(sent[shard].end, awaited[shard].begin);
  }
}

TEST_P(ObserverTest, RowsAreAwaitedUntilTheirEventIsApplied) {
  const std::vector<int64_t> row_ids = {6};
  std::vector<float> out(2);
  client::PendingPull pull = trainer_->PullAsync(
      row_ids, std::as_writable_bytes(std::span(out)), {.exact_event = 1});
  ASSERT_THAT(ApplyEvent(*trainer_, 1, {6}), IsOk());
  ASSERT_THAT(pull.Wait(), IsOk());
  EXPECT_THAT(out, ElementsAre(-1, -1));
  ASSERT_NO_FATAL_FAILURE(Await(Stage::kCommit, 2));
  const std::vector<Span> taken = Spans(Stage::kTakeRows);
  const std::vector<Span> commits = Spans(Stage::kCommit);
  ASSERT_EQ(taken.size(), 1);
  ASSERT_EQ(commits.size(), 2);
  EXPECT_EQ(taken[0].event, 1);
  EXPECT_GE(taken[0].begin, commits[1].begin);
}

TEST_P(ObserverTest, AnEventIsToldFromItsPartsToItsApplication) {
  ASSERT_THAT(ApplyEvent(*trainer_, 1, {6, 7}), IsOk());
  // Without rows nothing is put into an inbox.
  EXPECT_THAT(TheTold(Stage::kPush),
              ElementsAre(FieldsAre(Stage::kPush, 0, 1, 0, Path::kGrpc),
                          FieldsAre(Stage::kPush, 1, 1, 2, GetParam())));
  for (const Stage stage : {Stage::kSeal, Stage::kCommit, Stage::kAwaitEvent}) {
    ASSERT_NO_FATAL_FAILURE(Await(stage, 2));
    EXPECT_THAT(TheTold(stage),
                ElementsAre(FieldsAre(stage, 0, 1, 0, Path::kGrpc),
                            FieldsAre(stage, 1, 1, 0, Path::kGrpc)));
    const std::vector<Span> spans = Spans(stage);
    const std::vector<Span> pushes = Spans(Stage::kPush);
    for (size_t shard = 0; shard < 2; ++shard) {
      EXPECT_GE(spans[shard].end, pushes[shard].end);
    }
  }
}

TEST_P(ObserverTest, WhatFailsIsNotTold) {
  const std::vector<int64_t> row_ids = {1};
  const std::vector<float> ones = {1, 1};
  EXPECT_THAT(trainer_->Push(9, row_ids, std::as_bytes(std::span(ones))),
              StatusIs(absl::StatusCode::kFailedPrecondition, ""));
  EXPECT_THAT(Spans(Stage::kPush), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Paths, ObserverTest,
                         ::testing::Values(Path::kGrpc, Path::kOneSided),
                         [](const auto& path) {
                           return path.param == Path::kGrpc ? "Grpc"
                                                            : "OneSided";
                         });

}  // namespace
}  // namespace rowhouse::testing
