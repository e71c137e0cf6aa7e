// What landings and pulls hold is free as soon as it is of no more use.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/failing_backend.h"
#include "tests/server/shard/shard_part_fixture.h"

namespace rowhouse::testing {
namespace {

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

// A receiver whose caller has stalled: it drops its landing when it is told.
// The shard's calls, made one after another, order what it is asked.
class StalledPart {
 public:
  StalledPart(server::Shard& shard, const server::PartHeader& header) {
    Pending<absl::Status> begun;
    shard.BeginPart(header, BlockingShard::NewCall(),
                    [this, answer = begun.Callback()](
                        absl::StatusOr<std::unique_ptr<server::PartLanding>>
                            landing) mutable {
                      if (landing.ok()) {
                        landing_ = *std::move(landing);
                        landing_->set_on_revoked([this](absl::Status reason) {
                          reason_ = std::move(reason);
                          landing_ = nullptr;
                        });
                      }
                      answer(landing.status());
                    });
    EXPECT_THAT(begun.Wait(), IsOk());
  }
  StalledPart(const StalledPart&) = delete;

  server::PartLanding& landing() { return *landing_; }
  bool live() const { return landing_ != nullptr; }
  // Why it was revoked; OK when it was not.
  const absl::Status& reason() const { return reason_; }

 private:
  std::unique_ptr<server::PartLanding> landing_;
  absl::Status reason_;
};

class ShardRevokeTest : public PartTest {
 protected:
  static constexpr int64_t kRows = 64;
  static constexpr int64_t kPartBytes = kRows * (8 + 2 * 4);  // Slot and row.

  ShardRevokeTest() {
    auto failing = std::make_unique<FailingBackend>(std::move(backend_));
    failing_ = failing.get();
    backend_ = std::move(failing);
  }

  StalledPart Stall(server::TrainerSession trainer, int64_t event,
                    int32_t part) {
    return StalledPart(*owned_, {trainer, event, part, kRows, {}});
  }

  // A pull of three rows, of which one has been read.
  std::unique_ptr<server::Pull> OpenPullOf(server::TrainerSession trainer) {
    server::PullRequest request;
    request.trainer = trainer;
    auto pull = shard_->OpenPull({1, 2, 3}, request);
    EXPECT_THAT(pull, IsOk());
    EXPECT_THAT(shard_->Read(**pull, 1), IsOk());
    return *std::move(pull);
  }
  static constexpr int64_t kSavedBytes = 2 * 2 * 4;

  // Bytes in use beyond those after `Start`.
  int64_t HeldBytes() const { return FailingBackend::live_bytes - before_; }
  void StartAndCount() {
    StartWithSessions();
    before_ = FailingBackend::live_bytes;
  }

  FailingBackend* failing_;
  int64_t before_ = 0;
};

TEST_F(ShardRevokeTest, APartThatBeginsToLandAgainFreesTheOlderLanding) {
  StartAndCount();
  StalledPart older = Stall(kRank0, 1, 0);
  EXPECT_EQ(HeldBytes(), kPartBytes);
  EXPECT_TRUE(older.live());
  StalledPart newer = Stall(kRank0, 1, 0);
  EXPECT_THAT(older.reason(), Fails(kAborted, "SUPERSEDED"));
  EXPECT_TRUE(newer.live());
  EXPECT_EQ(HeldBytes(), kPartBytes);
}

TEST_F(ShardRevokeTest, ADiscardFreesWhatLands) {
  StartAndCount();
  StalledPart stalled = Stall(kRank0, 1, 0);
  StalledPart other = Stall(kRank0, 2, 0);
  ASSERT_THAT(shard_->Discard(kRank0, 1), IsOk());
  EXPECT_THAT(stalled.reason(), Fails(kAborted, "SUPERSEDED"));
  EXPECT_TRUE(other.live());
  EXPECT_EQ(HeldBytes(), kPartBytes);
}

TEST_F(ShardRevokeTest, ANewerSessionFreesWhatItsRankLands) {
  StartAndCount();
  StalledPart stalled = Stall(kRank0, 1, 0);
  StalledPart ahead = Stall(kRank0, 2, 0);
  StalledPart other = Stall(kRank1, 1, 0);
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_THAT(stalled.reason(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(ahead.reason(), Fails(kAborted, "FENCED"));
  EXPECT_TRUE(other.live());
  EXPECT_EQ(HeldBytes(), kPartBytes);
}

TEST_F(ShardRevokeTest, ASealFreesWhatLandsBesideIt) {
  StartAndCount();
  StalledPart stalled = Stall(kRank0, 1, 1);
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  part.seal_part_count = 1;
  ASSERT_THAT(shard_->Push(part), IsOk());
  EXPECT_THAT(stalled.reason(), Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  StalledPart other = Stall(kRank1, 1, 0);
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  EXPECT_THAT(other.reason(), Fails(kPrecondition, "CONTRIBUTION_SEALED"));
  EXPECT_LT(HeldBytes(), kPartBytes);
}

TEST_F(ShardRevokeTest, AnEarlierSealsRepeatLeavesALaterLandingAlone) {
  StartAndCount();
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  StalledPart next = Stall(kRank0, 2, 0);
  ASSERT_THAT(shard_->Seal(kRank0, 1, 0), IsOk());
  EXPECT_TRUE(next.live());
}

TEST_F(ShardRevokeTest, ARepeatOfAKnownPartIsFencedAndOutlivesTheSeal) {
  StartAndCount();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  const int64_t staged_bytes = HeldBytes();
  StalledPart repeat = Stall(kRank0, 1, 0);
  EXPECT_GT(HeldBytes(), staged_bytes);
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  EXPECT_TRUE(repeat.live());
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_THAT(repeat.reason(), Fails(kAborted, "FENCED"));
  EXPECT_EQ(HeldBytes(), staged_bytes);
}

TEST_F(ShardRevokeTest, AResetFreesAllThatLands) {
  StartAndCount();
  StalledPart stalled = Stall(kRank1, 1, 0);
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_THAT(stalled.reason(), Fails(kAborted, "FENCED"));
  EXPECT_EQ(HeldBytes(), 0);
}

TEST_F(ShardRevokeTest, AShardThatIsClosedFreesAllThatLands) {
  StartAndCount();
  StalledPart stalled = Stall(kRank1, 1, 0);
  owned_->Close(absl::NotFoundError("deleted"));
  EXPECT_THAT(stalled.reason(),
              StatusIs(absl::StatusCode::kNotFound, "deleted"));
  EXPECT_EQ(HeldBytes(), 0);
}

TEST_F(ShardRevokeTest, AFaultInAnEventFreesAllThatLands) {
  StartAndCount();
  StalledPart stalled = Stall(kRank0, 2, 0);
  failing_->fail_events = true;
  ApplyEmptyEvent(1);
  EXPECT_FALSE(shard_->GetInfo().ok());
  EXPECT_THAT(stalled.reason(),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  EXPECT_EQ(HeldBytes(), 0);
}

TEST_F(ShardRevokeTest, ANewerSessionFreesWhatPullsOfItsRankHaveSaved) {
  StartAndCount();
  const auto pull = OpenPullOf(kRank0);
  const auto other = OpenPullOf(kRank1);
  const int gathers_before = failing_->gather_count;
  ApplyEmptyEvent(1);
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_EQ(failing_->gather_count, gathers_before + 2);  // Both are saved.
  const int64_t held_before = HeldBytes();
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_EQ(HeldBytes(), held_before - kSavedBytes);
  EXPECT_THAT(shard_->Read(*pull, 1), Fails(kAborted, "FENCED"));
  EXPECT_THAT(shard_->Read(*other, 1), IsOk());
}

TEST_F(ShardRevokeTest, PullsOfAnOlderSessionAreNotSaved) {
  StartAndCount();
  const auto pull = OpenPullOf(kRank0);
  const auto other = OpenPullOf(kRank1);
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  const int gathers_before = failing_->gather_count;
  ASSERT_THAT(shard_->Seal({0, 2}, 1, 0), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit({0, 2}, 1, Commit({2, 1})), IsOk());
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_EQ(failing_->gather_count, gathers_before + 1);
}

TEST_F(ShardRevokeTest, APartHandedOverBeforeIsAnsweredByTheShard) {
  StartAndCount();
  PartToPush part = OneRow(kRank0, 1, 0, 3);
  auto landing = shard_->Begin(part);
  ASSERT_THAT(landing, IsOk());
  ASSERT_THAT(shard_->Land(**landing, part), IsOk());
  ASSERT_THAT(shard_->Discard(kRank0, 1), IsOk());
  EXPECT_THAT(shard_->Finish(*std::move(landing), part),
              Fails(kAborted, "SUPERSEDED"));
  EXPECT_EQ(AppliedEvent(), 0);  // The lane has come past it.
  EXPECT_EQ(HeldBytes(), 0);
}

}  // namespace
}  // namespace rowhouse::testing
