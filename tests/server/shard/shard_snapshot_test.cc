// Snapshots: rows as of an event, while events go on.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_part_fixture.h"
#include "tests/server/shard/snapshot_fixture.h"

namespace rowhouse::testing {
namespace {

using absl::StatusCode;
using server::Snapshot;
using server::SnapshotRequest;
using ::testing::ElementsAre;

// Blocks of one row, and four chunks for rows put aside: commits wait soon.
class SnapshotTest : public PartTest {
 protected:
  static SnapshotRequest Request(int64_t event, std::string name = "c") {
    SnapshotRequest request;
    request.name = std::move(name);
    request.event = event;
    return request;
  }

  std::unique_ptr<Snapshot> Opened(const SnapshotRequest& request) {
    OpenedSnapshotOr snapshot = OpenSnapshot(*owned_, request);
    EXPECT_THAT(snapshot, IsOk());
    return snapshot.ok() ? *std::move(snapshot) : nullptr;
  }

  std::unique_ptr<Snapshot> Cut(const SnapshotRequest& request) {
    std::unique_ptr<Snapshot> snapshot = Opened(request);
    EXPECT_THAT(StartCut(*snapshot).Wait(), IsOk());
    return snapshot;
  }

  // Of rank 0, for all of `rows`.
  static PartToPush Rows(int64_t event, std::vector<int64_t> rows) {
    PartToPush push = OneRow(kRank0, event, 0, 0);
    push.rows.clear();
    for (const int64_t row : rows) {
      push.rows += Floats({static_cast<float>(row + event), 1});
    }
    push.row_ids = std::move(rows);
    return push;
  }

  static server::EventCommit Decaying() {
    server::EventCommit commit = Commit();
    commit.scalars.beta2 = 0.5;
    return commit;
  }

  void SealEvent(int64_t event, std::vector<int64_t> rows) {
    ASSERT_THAT(shard_->Push(Rows(event, std::move(rows))), IsOk());
    ASSERT_THAT(shard_->Seal(kRank0, event, 1), IsOk());
    ASSERT_THAT(shard_->Seal(kRank1, event, 0), IsOk());
  }

  void Apply(int64_t event, std::vector<int64_t> rows) {
    SealEvent(event, std::move(rows));
    ASSERT_THAT(shard_->Commit(kRank0, event, Decaying()), IsOk());
  }

  // Returns when it is recorded, or waits for room.
  PendingCall<bool> StartCommit(
      int64_t event, const server::EventCommit& commit = Decaying(),
      std::shared_ptr<server::Call> call = BlockingShard::NewCall()) {
    PendingCall<bool> committed;
    owned_->Commit(kRank0, event, commit, std::move(call),
                   committed.Callback());
    EXPECT_THAT(shard_->GetInfo(), IsOk());
    return committed;
  }

  // Of a shard of the same table with these rows.
  uint64_t DigestOf(const server::ShardState& state, const SnapshotCopy& copy) {
    auto other = server::Shard::Create(spec_, limits_, *backend_, timers_);
    EXPECT_THAT(other, IsOk());
    Restore(**other, state, copy);
    BlockingShard shard(**other);
    const auto digest = shard.Digest();
    EXPECT_THAT(digest, IsOk());
    EXPECT_EQ(digest->event, state.event);
    return digest->row_sum + digest->history_sum;
  }

  uint64_t Digest() {
    const auto digest = shard_->Digest();
    EXPECT_THAT(digest, IsOk());
    return digest->row_sum + digest->history_sum;
  }

  SnapshotCopy NewCopy(int64_t row_count = 10) { return {spec_, row_count}; }
};

TEST_F(SnapshotTest, TheLastEventIsCutAtOnce) {
  StartWithSessions();
  Apply(1, {1, 2, 7});
  Apply(2, {2, 9});
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(2));
  EXPECT_EQ(snapshot->row_count(), 10);
  EXPECT_EQ(snapshot->state().event, 2);
  EXPECT_THAT(snapshot->state().beta2, ElementsAre(0.5F, 0.5F));
  SnapshotCopy copy = NewCopy();
  TakeRest(*snapshot, copy);
  EXPECT_TRUE(copy.complete());
  EXPECT_EQ(DigestOf(snapshot->state(), copy), Digest());
}

TEST_F(SnapshotTest, ALaterEventIsCutExactlyThere) {
  StartWithSessions();
  const std::unique_ptr<Snapshot> snapshot = Opened(Request(2));
  const Pending<absl::Status> cut = StartCut(*snapshot);
  Apply(1, {1, 2, 7});
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_FALSE(cut.IsDone());
  Apply(2, {2, 9});
  const uint64_t digest = Digest();
  EXPECT_TRUE(cut.IsDone());
  Apply(3, {1, 2, 3});  // They are kept in memory.
  EXPECT_EQ(AppliedEvent(), 3);
  EXPECT_NE(Digest(), digest);

  SnapshotCopy copy = NewCopy();
  const PieceOr first = Next(*snapshot);
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE((*first)->before_images());
  copy.Take(**first);
  TakeRest(*snapshot, copy);
  EXPECT_TRUE(copy.complete());
  EXPECT_EQ(snapshot->state().event, 2);
  EXPECT_EQ(DigestOf(snapshot->state(), copy), digest);
  EXPECT_EQ(snapshot->statistics().before_image_row_count, 3);
  EXPECT_EQ(snapshot->statistics().event_wait, absl::ZeroDuration());
}

TEST_F(SnapshotTest, RowsThatHaveBeenHandedOutDoNotGoAhead) {
  StartWithSessions();
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  for (int i = 0; i < 5; ++i) ASSERT_THAT(Next(*snapshot), IsOk());
  Apply(1, {0, 4, 5});
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_EQ(snapshot->statistics().before_image_row_count, 1);
}

TEST_F(SnapshotTest, ACommitWaitsForRoomForItsRows) {
  StartWithSessions();
  const uint64_t digest = Digest();
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  SealEvent(1, {0, 1, 2, 3, 4, 5, 6});
  PendingCall<bool> committed = StartCommit(1);
  EXPECT_FALSE(committed.IsDone());
  EXPECT_EQ(AppliedEvent(), 0);
  // Reads go on, and the event is not recorded.
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  timers_.Advance(absl::Seconds(2));
  // Rows go ahead in turns with blocks, until there is room.
  SnapshotCopy copy = NewCopy();
  std::vector<int64_t> ahead;
  int64_t blocks = 0;
  while (!committed.IsDone()) {
    PieceOr piece = Next(*snapshot);
    ASSERT_THAT(piece, IsOk());
    copy.Take(**piece);
    if ((*piece)->before_images()) {
      ahead.insert(ahead.end(), (*piece)->places().begin(),
                   (*piece)->places().end());
    } else {
      ++blocks;
    }
    piece->reset();
    ASSERT_THAT(shard_->GetInfo(), IsOk());  // The shard has the chunk back.
  }
  EXPECT_THAT(committed.Wait(), IsOk());
  EXPECT_THAT(ahead, ElementsAre(0, 1, 2));
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(AppliedEvent(), 1);
  EXPECT_EQ(snapshot->statistics().event_wait, absl::Seconds(2));
  EXPECT_EQ(snapshot->statistics().before_image_row_count, 7);
  TakeRest(*snapshot, copy);
  EXPECT_TRUE(copy.complete());
  EXPECT_EQ(DigestOf(snapshot->state(), copy), digest);
}

TEST_F(SnapshotTest, AWaitEndsWithTheLastBlockAndIsCounted) {
  StartWithSessions();
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  std::vector<PieceOr> held;
  for (int i = 0; i < 9; ++i) {
    PieceOr piece = Next(*snapshot);
    ASSERT_THAT(piece, IsOk());
    if (i < 4) held.push_back(std::move(piece));
  }
  SealEvent(1, {9});
  PendingCall<bool> committed = StartCommit(1);
  EXPECT_FALSE(committed.IsDone());
  timers_.Advance(absl::Seconds(2));
  held.push_back(Next(*snapshot));
  ASSERT_THAT(held.back(), IsOk());
  EXPECT_EQ((*held.back())->first_place(), 9);
  EXPECT_EQ(AppliedEvent(), 1);
  ASSERT_TRUE(committed.IsDone());
  timers_.Advance(absl::Seconds(3));
  EXPECT_EQ(snapshot->statistics().event_wait, absl::Seconds(2));
}

TEST_F(SnapshotTest, ACommitThatFindsNoRoomGivesUpAndChangesNothing) {
  StartWithSessions();
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  SealEvent(1, {0, 1, 2, 3, 4, 5, 6});
  PendingCall<bool> committed = StartCommit(1);
  timers_.Advance(limits_.max_wait);
  const absl::StatusOr<bool> result = committed.Wait();
  EXPECT_THAT(result,
              Fails(StatusCode::kResourceExhausted, "CHECKPOINT_BEHIND"));
  EXPECT_TRUE(wire::DetailsOf(result.status())->retry_delay.has_value());
  EXPECT_EQ(AppliedEvent(), 0);
  // It may even be skipped instead, which needs no room.
  server::EventCommit skip;
  skip.sessions = {1, 1};
  skip.skip = true;
  EXPECT_THAT(shard_->Commit(kRank0, 1, skip), IsOk());
  EXPECT_EQ(AppliedEvent(), 1);
}

TEST_F(SnapshotTest, OfTwoCommitsThatWaitedTheSecondIsARepetition) {
  StartWithSessions();
  std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  SealEvent(1, {0, 1, 2, 3, 4, 5, 6});
  PendingCall<bool> first = StartCommit(1);
  PendingCall<bool> same = StartCommit(1);
  server::EventCommit other = Decaying();
  other.scalars.beta2 = 0.25;
  PendingCall<bool> differing = StartCommit(1, other);
  snapshot = nullptr;  // There is room now.
  const absl::StatusOr<bool> recorded = first.Wait();
  ASSERT_THAT(recorded, IsOk());
  EXPECT_FALSE(*recorded);
  const absl::StatusOr<bool> again = same.Wait();
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(*again);
  EXPECT_THAT(differing.Wait(),
              Fails(StatusCode::kAlreadyExists, "COMMIT_DIFFERS"));
  EXPECT_EQ(shard_->GetEventState()->applied_events.back().commit.scalars.beta2,
            0.5);
}

TEST_F(SnapshotTest, ASessionThatIsFencedWaitsNoMore) {
  StartWithSessions();
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  SealEvent(1, {0, 1, 2, 3, 4, 5, 6});
  PendingCall<bool> committed = StartCommit(1);
  ASSERT_THAT(shard_->OpenSession({0, 2}), IsOk());
  EXPECT_THAT(committed.Wait(), Fails(StatusCode::kAborted, "FENCED"));
  EXPECT_EQ(AppliedEvent(), 0);
}

TEST_F(SnapshotTest, APushWithItsCommitWaitsToo) {
  spec_.trainer_count = 1;
  StartWithSessions();
  std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  PartToPush part = Rows(1, {0, 1, 2, 3, 4, 5, 6});
  part.seal_part_count = 1;
  part.commit = Commit({1});
  auto landing = shard_->Begin(part);
  ASSERT_THAT(landing, IsOk());
  ASSERT_THAT(shard_->Land(**landing, part), IsOk());
  PendingCall<server::PartReceipt> pushed;
  owned_->FinishPart(*std::move(landing), part.seal_part_count, part.commit,
                     BlockingShard::NewCall(), pushed.Callback());
  EXPECT_EQ(AppliedEvent(), 0);
  EXPECT_FALSE(pushed.IsDone());
  snapshot = nullptr;
  const absl::StatusOr<server::PartReceipt> receipt = pushed.Wait();
  ASSERT_THAT(receipt, IsOk());
  EXPECT_FALSE(receipt->duplicate);
  EXPECT_EQ(receipt->row_count, 7);
  EXPECT_EQ(AppliedEvent(), 1);
}

TEST_F(SnapshotTest, TrainingPullsLeaveItsStatesAlone) {
  StartWithSessions();
  Apply(1, {5});
  const uint64_t digest = Digest();
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(1));
  Apply(2, {2});
  server::PullRequest request;
  request.training = true;
  request.trainer = kRank0;
  ASSERT_THAT(shard_->Pull({5, 6}, request), IsOk());
  SnapshotCopy copy = NewCopy();
  TakeRest(*snapshot, copy);
  kernels::RowState state;
  std::memcpy(&state, copy.row(1, 5).data(), sizeof(state));
  EXPECT_EQ(state.last_event, 1);
  EXPECT_EQ(DigestOf(snapshot->state(), copy), digest);
}

TEST_F(SnapshotTest, ADeltaGoesOnTopOfItsBase) {
  StartWithSessions();
  Apply(1, {1, 2, 7});
  SnapshotCopy rows = NewCopy();
  {
    const std::unique_ptr<Snapshot> full = Cut(Request(1, "full"));
    TakeRest(*full, rows);
    full->NoteDurable();
  }
  Apply(2, {2, 9});
  Apply(3, {0, 9});
  const uint64_t digest = Digest();
  SnapshotRequest request = Request(3, "delta");
  request.base = {"full", 1};
  const std::unique_ptr<Snapshot> delta = Cut(request);
  EXPECT_EQ(delta->base_event(), 1);
  EXPECT_THAT(delta->slots(), ElementsAre(0, 2, 9));
  EXPECT_EQ(delta->row_count(), 3);
  Apply(4, {1, 9});  // 1 is none of its rows.
  SnapshotCopy changed = NewCopy(3);
  TakeRest(*delta, changed);
  EXPECT_TRUE(changed.complete());
  EXPECT_EQ(delta->statistics().before_image_row_count, 1);
  for (int64_t place = 0; place < 3; ++place) {
    for (size_t c = 0; c < 2; ++c) {
      const auto from = changed.row(c, place);
      std::copy(
          from.begin(), from.end(),
          rows.row(c, delta->slots()[static_cast<size_t>(place)]).begin());
    }
  }
  EXPECT_EQ(DigestOf(delta->state(), rows), digest);
}

TEST_F(SnapshotTest, ABaseIsOneThatTheRowsComeFrom) {
  StartWithSessions();
  Apply(1, {1});
  SnapshotRequest request = Request(1, "delta");
  request.base = {"full", 1};
  const auto no_base = Fails(StatusCode::kFailedPrecondition, "NO_BASE");
  EXPECT_THAT(OpenSnapshot(*owned_, request), no_base);
  // What is not on disk is no base.
  { const std::unique_ptr<Snapshot> full = Cut(Request(1, "full")); }
  EXPECT_THAT(OpenSnapshot(*owned_, request), no_base);
  {
    const std::unique_ptr<Snapshot> full = Cut(Request(1, "full"));
    full->NoteDurable();
  }
  EXPECT_THAT(OpenSnapshot(*owned_, request), IsOk());
  // Another one has its name by now.
  request.base->event = 0;
  EXPECT_THAT(OpenSnapshot(*owned_, request), no_base);
  request.base->event = 1;
  ASSERT_THAT(shard_->Reset(), IsOk());
  request.event = 0;
  EXPECT_THAT(OpenSnapshot(*owned_, request), no_base);
}

TEST_F(SnapshotTest, OneThatCannotBeIsRefused) {
  StartWithSessions();
  Apply(1, {1});
  EXPECT_THAT(OpenSnapshot(*owned_, Request(0)),
              Fails(StatusCode::kFailedPrecondition, "EVENT_PAST"));
  EXPECT_THAT(OpenSnapshot(*owned_, Request(-1)),
              Fails(StatusCode::kInvalidArgument, "BAD_EVENT"));
  std::unique_ptr<Snapshot> first = Opened(Request(5));
  EXPECT_THAT(OpenSnapshot(*owned_, Request(1)),
              Fails(StatusCode::kResourceExhausted, "CHECKPOINTS_OPEN"));
  first = nullptr;
  EXPECT_THAT(OpenSnapshot(*owned_, Request(1)), IsOk());
}

TEST_F(SnapshotTest, WhatRewritesTheRowsEndsIt) {
  StartWithSessions();
  std::unique_ptr<Snapshot> snapshot = Cut(Request(0));
  ASSERT_THAT(shard_->Import(3, 1, Floats({1, 2})), IsOk());
  EXPECT_THAT(Next(*snapshot), Fails(StatusCode::kAborted, "TABLE_REWRITTEN"));
  snapshot = Opened(Request(1));
  Pending<absl::Status> cut = StartCut(*snapshot);
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_THAT(cut.Wait(), Fails(StatusCode::kAborted, "TABLE_REWRITTEN"));
  snapshot = Opened(Request(1));
  cut = StartCut(*snapshot);
  owned_->Close(absl::UnavailableError("the end"));
  EXPECT_EQ(cut.Wait().code(), StatusCode::kUnavailable);
}

// Imported rows have no event: a delta would lack them.
TEST_F(SnapshotTest, AnImportEndsADeltaThatWaitsForItsEvent) {
  StartWithSessions();
  {
    const std::unique_ptr<Snapshot> full = Cut(Request(0, "full"));
    full->NoteDurable();
  }
  SnapshotRequest request = Request(1, "delta");
  request.base = {"full", 0};
  std::unique_ptr<Snapshot> snapshot = Opened(request);
  Pending<absl::Status> cut = StartCut(*snapshot);
  ASSERT_THAT(shard_->Import(3, 1, Floats({1, 2})), IsOk());
  ASSERT_TRUE(cut.IsDone());
  EXPECT_THAT(cut.Wait(), Fails(StatusCode::kAborted, "TABLE_REWRITTEN"));
  // One that has no base has all rows.
  snapshot = Opened(Request(1));
  ASSERT_THAT(shard_->Import(4, 1, Floats({1, 2})), IsOk());
  Apply(1, {1});
  EXPECT_THAT(StartCut(*snapshot).Wait(), IsOk());
}

TEST_F(SnapshotTest, ItsCallEndsIt) {
  StartWithSessions();
  const auto call = BlockingShard::NewCall();
  OpenedSnapshotOr snapshot = OpenSnapshot(*owned_, Request(1), call);
  ASSERT_THAT(snapshot, IsOk());
  Pending<absl::Status> cut = StartCut(**snapshot);
  call->cancelled = true;
  owned_->NoteCancelled();
  EXPECT_EQ(cut.Wait().code(), StatusCode::kCancelled);
  EXPECT_THAT(OpenSnapshot(*owned_, Request(1)), IsOk());
}

TEST_F(SnapshotTest, AShardWithoutRowsHasAnEmptyOne) {
  spec_.placement = wire::Placement::Even(1, 2);
  StartWithSessions();
  ApplyEmptyEvent(1);
  const std::unique_ptr<Snapshot> snapshot = Cut(Request(1));
  EXPECT_EQ(snapshot->row_count(), 0);
  const PieceOr piece = Next(*snapshot);
  ASSERT_THAT(piece, IsOk());
  EXPECT_EQ(*piece, nullptr);
}

}  // namespace
}  // namespace rowhouse::testing
