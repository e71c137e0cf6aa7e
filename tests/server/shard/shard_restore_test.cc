// Restorations: rows and their state from elsewhere.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_part_fixture.h"
#include "tests/server/shard/snapshot_fixture.h"

namespace rowhouse::testing {
namespace {

using absl::StatusCode;
using server::Restoration;
using server::ShardState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Restores what the shard was after event 2, with weights of row i (i, 0).
class RestoreTest : public PartTest {
 protected:
  RestoreTest() {
    for (int64_t row = 0; row < 10; ++row) {
      const float value = static_cast<float>(row);
      std::memcpy(copy_.row(0, row).data(), &value, sizeof(value));
    }
  }

  void SetLastEvent(int64_t row, int32_t event) {
    const kernels::RowState state{1.0F, event};
    std::memcpy(copy_.row(1, row).data(), &state, sizeof(state));
  }

  std::unique_ptr<Restoration> Opened() {
    auto opened = OpenRestoration(*owned_, state_);
    EXPECT_THAT(opened, IsOk());
    return opened.ok() ? *std::move(opened) : nullptr;
  }

  ShardState state_{2, {0.5F, 0.25F}, {{1, 2}}};
  SnapshotCopy copy_{spec_, 10};
};

TEST_F(RestoreTest, TheShardGoesOnFromTheEvent) {
  StartWithSessions();
  ApplyEventWithParts(1);
  Restore(*owned_, state_, copy_);
  EXPECT_EQ(AppliedEvent(), 2);
  EXPECT_THAT(Row(7), ElementsAre(7, 0));
  EXPECT_THAT(Row(3), ElementsAre(3, 0));
  // Sessions are closed; their numbers stay used.
  EXPECT_THAT(shard_->Seal(kRank0, 3, 0),
              Fails(StatusCode::kAborted, "FENCED"));
  EXPECT_THAT(shard_->OpenSession({0, 1}),
              Fails(StatusCode::kAborted, "FENCED"));
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  ASSERT_THAT(shard_->OpenSession({1, 2}), IsOk());
  ASSERT_THAT(shard_->Seal({0, 2}, 3, 0), IsOk());
  ASSERT_THAT(shard_->Seal({1, 2}, 3, 0), IsOk());
  ASSERT_THAT(shard_->Commit({0, 2}, 3, Commit({2, 2})), IsOk());
  EXPECT_EQ(AppliedEvent(), 3);
}

TEST_F(RestoreTest, PartsAndCommitsUpToTheEventAreRepetitions) {
  Start();
  Restore(*owned_, state_, copy_);
  ASSERT_THAT(shard_->OpenSession(kRank0), IsOk());
  for (const int64_t event : {1, 2}) {
    const auto receipt = shard_->Push(OneRow(kRank0, event, 0, 3));
    ASSERT_THAT(receipt, IsOk());
    EXPECT_TRUE(receipt->duplicate);
    const auto recorded = shard_->Commit(kRank0, event, Commit());
    ASSERT_THAT(recorded, IsOk());
    EXPECT_TRUE(*recorded);
    EXPECT_THAT(shard_->Seal(kRank0, event, 5), IsOk());
  }
  const auto receipt = shard_->Push(OneRow(kRank0, 3, 0, 3));
  ASSERT_THAT(receipt, IsOk());
  EXPECT_FALSE(receipt->duplicate);
  EXPECT_THAT(Row(3), ElementsAre(3, 0));
}

TEST_F(RestoreTest, UntilItIsDoneNothingIsServed) {
  StartWithSessions();
  server::PullRequest later;
  later.min_event = 7;
  PendingCall<std::unique_ptr<server::Pull>> waiting =
      shard_->StartPull({1}, later);
  ASSERT_THAT(shard_->GetInfo(), IsOk());
  std::unique_ptr<Restoration> restoration = Opened();
  const auto not_restored =
      Fails(StatusCode::kFailedPrecondition, "NOT_RESTORED");
  EXPECT_THAT(waiting.Wait(), not_restored);
  EXPECT_THAT(shard_->Pull({1}), not_restored);
  EXPECT_THAT(shard_->Digest(), not_restored);
  EXPECT_THAT(shard_->OpenSession({0, 2}), not_restored);
  ASSERT_THAT(Write(*restoration, 0, 9, copy_), IsOk());
  EXPECT_THAT(Finish(*restoration).ToString(), HasSubstr("9 of 10 rows"));
  EXPECT_THAT(shard_->Pull({1}), not_restored);
  ASSERT_THAT(Write(*restoration, 9, 1, copy_), IsOk());
  ASSERT_THAT(Finish(*restoration), IsOk());
  EXPECT_THAT(Row(9), ElementsAre(9, 0));
}

TEST_F(RestoreTest, AfterAFailureItIsRestoredAgainOrReset) {
  StartWithSessions();
  std::unique_ptr<Restoration> restoration = Opened();
  ASSERT_THAT(Write(*restoration, 0, 4, copy_), IsOk());
  restoration = nullptr;
  const auto pulled = shard_->Pull({1});
  EXPECT_THAT(pulled, Fails(StatusCode::kFailedPrecondition, "NOT_RESTORED"));
  EXPECT_THAT(std::string(pulled.status().message()), HasSubstr("failed"));
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  EXPECT_EQ(AppliedEvent(), 0);

  restoration = Opened();
  restoration = nullptr;
  Restore(*owned_, state_, copy_);
  EXPECT_THAT(Row(3), ElementsAre(3, 0));
}

TEST_F(RestoreTest, AnotherOneTakesItsPlace) {
  Start();
  std::unique_ptr<Restoration> first = Opened();
  std::unique_ptr<Restoration> second = Opened();
  EXPECT_EQ(Write(*first, 0, 1, copy_).code(), StatusCode::kAborted);
  first = nullptr;
  ASSERT_THAT(Write(*second, 0, 10, copy_), IsOk());
  ASSERT_THAT(Finish(*second), IsOk());
  second = nullptr;
  EXPECT_THAT(Row(3), ElementsAre(3, 0));
}

TEST_F(RestoreTest, StatesThatCannotBeAreNamed) {
  StartWithSessions();
  const auto fails_with = [&](const ShardState& state, const char* text) {
    const auto opened = OpenRestoration(*owned_, state);
    EXPECT_THAT(opened, Fails(StatusCode::kDataLoss, "DAMAGED"));
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(text));
    EXPECT_THAT(shard_->Pull({1}), IsOk());  // Nothing has changed.
  };
  fails_with({3, {0.5F, 0.25F}, {{1, 2}}}, "event 3 and has 2 values");
  fails_with({-1, {}, {{1, 2}}}, "event -1");
  fails_with({2, {0.5F, -0.25F}, {{1, 2}}}, "beta2 of event 2 is -0.25");
  fails_with({0, {}, {}}, "0 trainer counts");
  fails_with({0, {}, {{2, 2}}}, "trainer count 0 is from event 2");
  fails_with({0, {}, {{1, 2}, {5, 1}, {5, 2}}}, "trainer count 2");
  fails_with({0, {}, {{1, 0}}}, "trainer count 0 is 0");
}

TEST_F(RestoreTest, ARowFromTheFutureIsNamed) {
  spec_.placement = wire::Placement::Even(20, 2);
  spec_.shard_index = 1;
  Start();
  SetLastEvent(6, 3);
  const std::unique_ptr<Restoration> restoration = Opened();
  ASSERT_THAT(Write(*restoration, 0, 5, copy_), IsOk());
  const absl::Status written = Write(*restoration, 5, 5, copy_);
  EXPECT_THAT(written, Fails(StatusCode::kDataLoss, "DAMAGED"));
  EXPECT_THAT(written.ToString(), HasSubstr("row 16 was updated by event 3"));
}

TEST_F(RestoreTest, ItsNameIsABase) {
  Start();
  SetLastEvent(3, 2);
  Restore(*owned_, state_, copy_, 3, "full");
  ASSERT_THAT(shard_->OpenSession(kRank0), IsOk());
  ASSERT_THAT(shard_->OpenSession(kRank1), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 3, 0, 5)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 3, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 3, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 3, Commit()), IsOk());
  server::SnapshotRequest request;
  request.name = "delta";
  request.base = {"full", state_.event};
  request.event = 3;
  const OpenedSnapshotOr delta = OpenSnapshot(*owned_, request);
  ASSERT_THAT(delta, IsOk());
  ASSERT_THAT(StartCut(**delta).Wait(), IsOk());
  EXPECT_THAT((*delta)->slots(), ElementsAre(5));
}

}  // namespace
}  // namespace rowhouse::testing
