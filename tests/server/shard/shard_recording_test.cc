// Recordings of applied events.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/recording.h"
#include "server/shard/recordings.h"
#include "tests/server/shard/failing_backend.h"
#include "tests/server/shard/head_fixture.h"
#include "tests/server/shard/shard_part_fixture.h"

namespace rowhouse::testing {
namespace {

using server::RecordedPiece;
using server::Recording;
using server::RecordingRequest;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using SharedRecording = std::shared_ptr<Recording>;

absl::StatusOr<SharedRecording> OpenRecording(
    server::Shard& shard, RecordingRequest request,
    std::shared_ptr<server::Call> call = BlockingShard::NewCall()) {
  PendingCall<SharedRecording> opened;
  if (request.buffer_bytes == 0) {
    request.buffer_bytes = server::Shard::RecordingBytes(shard.spec());
  }
  shard.OpenRecording(std::move(request), std::move(call), opened.Callback());
  return opened.Wait();
}

PendingCall<bool> StartNext(Recording& recording) {
  PendingCall<bool> next;
  recording.Next(next.Callback());
  return next;
}

absl::StatusOr<bool> Next(Recording& recording) {
  return StartNext(recording).Wait();
}

// All pieces of the event that the recording is at.
std::vector<RecordedPiece> Pieces(const Recording& recording,
                                  int64_t max_bytes = 1 << 20,
                                  bool targets_only = false) {
  server::RecordedPieces pieces = recording.Pieces(max_bytes, targets_only);
  const auto event = recording.Current();
  EXPECT_THAT(event, IsOk());
  std::vector<RecordedPiece> result;
  RecordedPiece piece;
  while (true) {
    const auto next = pieces.Next(**event, piece);
    EXPECT_THAT(next, IsOk());
    if (!next.ok() || !*next) return result;
    result.push_back(piece);
  }
}

class RecordingTest : public PartTest {
 protected:
  SharedRecording Opened(RecordingRequest request = {}) {
    absl::StatusOr<SharedRecording> recording =
        OpenRecording(*owned_, std::move(request));
    EXPECT_THAT(recording, IsOk());
    return recording.ok() ? *recording : nullptr;
  }

  static PartToPush Rows(server::TrainerSession trainer, int64_t event,
                         int32_t part, std::vector<int64_t> row_ids) {
    PartToPush push = OneRow(trainer, event, part, 0);
    push.rows.clear();
    for (const int64_t id : row_ids) {
      push.rows += Floats({static_cast<float>(id), 0.5F});
    }
    push.row_ids = std::move(row_ids);
    return push;
  }
};

TEST_F(RecordingTest, AnEventComesWithItsPartsInOrder) {
  spec_.placement = wire::Placement::Even(20, 2);
  spec_.shard_index = 1;  // Rows 10 to 19.
  StartWithSessions();
  const SharedRecording recording = Opened();
  EXPECT_EQ(recording->start().event, 0);
  const PendingCall<bool> first = StartNext(*recording);
  ASSERT_THAT(shard_->Push(Rows(kRank1, 1, 1, {})), IsOk());
  ASSERT_THAT(shard_->Push(Rows(kRank1, 1, 0, {19, 10, 19})), IsOk());
  ASSERT_THAT(shard_->Push(Rows(kRank0, 1, 0, {12})), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 2), IsOk());
  EXPECT_FALSE(first.IsDone());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());

  PendingCall<bool> waited = first;
  EXPECT_EQ(*waited.Wait(), true);
  const auto event = *recording->Current();
  EXPECT_EQ(event->event, 1);
  EXPECT_EQ(event->commit, Commit());
  EXPECT_EQ(event->contributions.at(1).session, 1);
  // Two rows of 16 bytes fit a piece.
  const std::vector<RecordedPiece> pieces = Pieces(*recording, 32);
  ASSERT_THAT(pieces, SizeIs(4));
  EXPECT_EQ(pieces[0].trainer_rank, 0);
  EXPECT_THAT(pieces[0].ids, ElementsAre(12));
  EXPECT_EQ(pieces[1].trainer_rank, 1);
  EXPECT_EQ(pieces[1].part, 0);
  EXPECT_EQ(pieces[1].item_count, 3);
  EXPECT_THAT(pieces[1].ids, ElementsAre(19, 10));
  EXPECT_EQ(pieces[1].payload, Floats({19, 0.5F, 10, 0.5F}));
  EXPECT_EQ(pieces[2].first_item, 2);
  EXPECT_THAT(pieces[2].ids, ElementsAre(19));
  EXPECT_EQ(pieces[3].part, 1);
  EXPECT_EQ(pieces[3].item_count, 0);
  EXPECT_THAT(pieces[3].ids, IsEmpty());
}

TEST_F(RecordingTest, TheLoadTellsTheFullestBufferOfThoseUnderWay) {
  StartWithSessions();
  const auto load = [&] { return shard_->GetEventState()->load; };
  EXPECT_EQ(load().recording_count, 0);
  EXPECT_EQ(load().recording_buffer_bytes, 0);
  const SharedRecording large = Opened({.buffer_bytes = 1000});
  const auto caller = BlockingShard::NewCall();
  const SharedRecording small =
      *OpenRecording(*owned_, {.buffer_bytes = 500}, caller);
  const SharedRecording ends = Opened({.last_event = 1});
  EXPECT_EQ(load().recording_count, 3);
  EXPECT_EQ(load().recording_held_bytes, 0);
  ASSERT_THAT(shard_->Push(Rows(kRank0, 1, 0, {3, 4})), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  // Two rows of two fp32 and an id. One recording has its last event.
  EXPECT_EQ(load().recording_count, 2);
  EXPECT_EQ(load().recording_held_bytes, 32);
  EXPECT_EQ(load().recording_buffer_bytes, 500);
  ASSERT_EQ(*Next(*small), true);
  const PendingCall<bool> waits = StartNext(*small);  // Has let go of it.
  EXPECT_EQ(load().recording_held_bytes, 32);
  EXPECT_EQ(load().recording_buffer_bytes, 1000);
  caller->cancelled = true;
  EXPECT_EQ(load().recording_count, 1);
}

TEST_F(RecordingTest, WhatWasDiscardedNeverShows) {
  StartWithSessions();
  const SharedRecording recording = Opened();
  ASSERT_THAT(shard_->Push(Rows(kRank0, 1, 0, {7})), IsOk());
  ASSERT_THAT(shard_->Discard(kRank0, 1), IsOk());
  ASSERT_THAT(shard_->Push(Rows(kRank1, 1, 0, {8})), IsOk());
  ASSERT_THAT(shard_->OpenSession({1, 2}), IsOk());
  ASSERT_THAT(shard_->Push(Rows(kRank0, 1, 0, {3})), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal({1, 2}, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit({1, 2})), IsOk());
  ASSERT_EQ(*Next(*recording), true);
  const std::vector<RecordedPiece> pieces = Pieces(*recording);
  ASSERT_THAT(pieces, SizeIs(1));
  EXPECT_THAT(pieces[0].ids, ElementsAre(3));
}

TEST_F(RecordingTest, DigestsAreThoseOfTheStartAndTheLastEvent) {
  StartWithSessions();
  ApplyEventWithParts(1);
  const SharedRecording recording = Opened({.last_event = 3, .digest = true});
  const auto start = shard_->Digest();
  EXPECT_EQ(recording->start().event, 1);
  EXPECT_EQ(recording->start().digest->row_sum, start->row_sum);
  ApplyEventWithParts(2);
  ApplyEventWithParts(3);
  const auto end = shard_->Digest();
  ApplyEventWithParts(4);
  ASSERT_EQ(*Next(*recording), true);
  EXPECT_FALSE((*recording->Current())->digest.has_value());
  ASSERT_EQ(*Next(*recording), true);
  const auto last = *recording->Current();
  EXPECT_EQ(last->event, 3);
  EXPECT_EQ(last->digest->row_sum, end->row_sum);
  EXPECT_EQ(last->digest->history_sum, end->history_sum);
  EXPECT_EQ(*Next(*recording), false);
}

TEST_F(RecordingTest, ItCannotEndBeforeItBegins) {
  StartWithSessions();
  ApplyEventWithParts(1);
  EXPECT_THAT(OpenRecording(*owned_, {.last_event = 1}),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(RecordingTest, AnEventThatDoesNotFitEndsItAndFreesAll) {
  StartWithSessions();
  // An event of `ApplyEventWithParts` has two rows of 16 bytes.
  auto reserved = std::make_shared<int>();
  const std::weak_ptr<int> reservation = reserved;
  const SharedRecording recording =
      Opened({.buffer_bytes = 64, .reservation = std::move(reserved)});
  ApplyEventWithParts(1);
  ApplyEventWithParts(2);
  ASSERT_EQ(*Next(*recording), true);
  const std::weak_ptr<const server::RecordedEvent> held = *recording->Current();
  EXPECT_FALSE(held.expired());
  EXPECT_FALSE(reservation.expired());
  ApplyEventWithParts(3);
  ASSERT_EQ(AppliedEvent(), 3);
  EXPECT_TRUE(held.expired());
  EXPECT_TRUE(reservation.expired());
  const auto behind = Next(*recording);
  EXPECT_THAT(behind,
              Fails(absl::StatusCode::kResourceExhausted, "RECORDER_BEHIND"));
  EXPECT_EQ(Detail(behind, "event"), "3");
  EXPECT_EQ(Detail(behind, "held_bytes"), "64");
}

TEST_F(RecordingTest, RoomIsFreeAgainOnceAnEventWasTaken) {
  StartWithSessions();
  const SharedRecording recording = Opened({.buffer_bytes = 64});
  for (int64_t event = 1; event <= 6; ++event) {
    ApplyEventWithParts(event);
    ASSERT_EQ(*Next(*recording), true);
    EXPECT_EQ((*recording->Current())->event, event);
  }
}

TEST_F(RecordingTest, ItsOwnBufferHoldsTwoFullEvents) {
  spec_.max_contribution_row_count = 3;
  StartWithSessions();
  const SharedRecording recording = Opened();
  for (int64_t event = 1; event <= 2; ++event) {
    for (const server::TrainerSession& trainer : {kRank0, kRank1}) {
      ASSERT_THAT(shard_->Push(Rows(trainer, event, 0, {1, 2, 3})), IsOk());
      ASSERT_THAT(shard_->Seal(trainer, event, 1), IsOk());
    }
    ASSERT_THAT(shard_->Commit(kRank0, event, Commit()), IsOk());
  }
  ASSERT_EQ(AppliedEvent(), 2);
  EXPECT_EQ(*Next(*recording), true);
  EXPECT_EQ(*Next(*recording), true);
}

TEST_F(RecordingTest, ImportsAndResetsEndIt) {
  StartWithSessions();
  const SharedRecording imported = Opened();
  PendingCall<bool> waiting = StartNext(*imported);
  ASSERT_THAT(shard_->Import(2, 1, Floats({1, 2})), IsOk());
  EXPECT_THAT(waiting.Wait(),
              Fails(absl::StatusCode::kAborted, "TABLE_REWRITTEN"));
  const SharedRecording reset = Opened();
  ApplyEventWithParts(1);
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_THAT(Next(*reset),
              Fails(absl::StatusCode::kAborted, "TABLE_REWRITTEN"));
}

TEST_F(RecordingTest, TheShardsEndEndsIt) {
  StartWithSessions();
  const SharedRecording recording = Opened();
  PendingCall<bool> waiting = StartNext(*recording);
  owned_->Close(absl::NotFoundError("deleted"));
  EXPECT_THAT(waiting.Wait(), StatusIs(absl::StatusCode::kNotFound, "deleted"));
}

TEST_F(RecordingTest, ACallerThatHasGoneFreesAll) {
  StartWithSessions();
  const auto call = BlockingShard::NewCall();
  const SharedRecording recording = *OpenRecording(*owned_, {}, call);
  ApplyEventWithParts(1);
  ASSERT_EQ(*Next(*recording), true);
  const std::weak_ptr<const server::RecordedEvent> held = *recording->Current();
  call->cancelled = true;
  owned_->NoteCancelled();
  ASSERT_THAT(shard_->GetInfo(), IsOk());  // The lane has been by.
  EXPECT_TRUE(held.expired());
  EXPECT_THAT(recording->Current(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST_F(RecordingTest, ThereAreOnlySoManyAtOnce) {
  StartWithSessions();
  std::vector<std::shared_ptr<server::Call>> calls;
  std::vector<SharedRecording> recordings;
  for (int32_t i = 0; i < server::Recordings::kMost; ++i) {
    calls.push_back(BlockingShard::NewCall());
    recordings.push_back(*OpenRecording(*owned_, {}, calls.back()));
  }
  EXPECT_THAT(OpenRecording(*owned_, {}),
              Fails(absl::StatusCode::kResourceExhausted, "RECORDINGS_OPEN"));
  ApplyEventWithParts(1);
  for (const SharedRecording& recording : recordings) {
    EXPECT_EQ(*Next(*recording), true);
  }
  calls[1]->cancelled = true;
  EXPECT_THAT(OpenRecording(*owned_, {}), IsOk());
}

TEST_F(RecordingTest, ABackendThatFailsEndsIt) {
  auto failing = std::make_unique<FailingBackend>(std::move(backend_));
  FailingBackend& fails = *failing;
  backend_ = std::move(failing);
  StartWithSessions();
  const SharedRecording recording = Opened();
  fails.fail_events = true;
  ApplyEventWithParts(1);
  EXPECT_THAT(Next(*recording), StatusIs(absl::StatusCode::kInternal, ""));
}

class HeadRecordingTest : public HeadTest {};

TEST_F(HeadRecordingTest, APartWithTermsComesWithThem) {
  StartWithSessions();
  const SharedRecording recording = *OpenRecording(*owned_, {});
  server::HeadHeader header = Header(kRank0, 1, 0, 2);
  header.softcap = 2;
  header.class_weights = true;
  header.coefficients = true;
  const auto head = Open(header);
  ASSERT_THAT(head, IsOk());
  const std::vector<float> weights = {0, 1, 2, 0.5F};
  ASSERT_THAT((*head)->AppendClassWeights(0, weights), IsOk());
  ASSERT_THAT(Land(**head), IsOk());
  ASSERT_THAT(StartStatistics(**head).Wait(), IsOk());
  const std::vector<float> max = {0, 0}, sum = {4, 4}, p = {1, 2}, t = {3, 4},
                           u = {5, 6};
  ASSERT_THAT((*head)->AppendMerged({0, max, sum, p, t, u}), IsOk());
  ASSERT_THAT(StartFinish(**head).Wait(), IsOk());
  Apply(1, 1, 0);
  ASSERT_EQ(*Next(*recording), true);
  for (const bool targets_only : {false, true}) {
    // Three class weights fit a piece, and no token does.
    const std::vector<RecordedPiece> pieces =
        Pieces(*recording, 12, targets_only);
    ASSERT_THAT(pieces, SizeIs(4));
    EXPECT_THAT(pieces[0].class_weights, ElementsAre(0, 1, 2));
    EXPECT_THAT(pieces[0].ids, IsEmpty());
    EXPECT_EQ(pieces[0].item_count, 2);
    EXPECT_THAT(pieces[1].class_weights, ElementsAre(0.5F));
    EXPECT_EQ(pieces[1].first_class_weight, 3);
    EXPECT_EQ(pieces[3].first_item, 1);
    EXPECT_EQ(pieces[3].softcap, 2);
    EXPECT_THAT(pieces[3].class_weights, IsEmpty());
    EXPECT_THAT(pieces[3].ids, ElementsAre(1));
    if (targets_only) continue;
    EXPECT_THAT(pieces[3].upstream, ElementsAre(2));
    EXPECT_THAT(pieces[3].target, ElementsAre(4));
    EXPECT_THAT(pieces[3].smoothing, ElementsAre(6));
  }
}

// A recorder that reads nothing while every event has class weights of its own.
TEST_F(HeadRecordingTest, ClassWeightsItHoldsBackHoldUpNoTraining) {
  StartWithSessions();
  const SharedRecording recording = *OpenRecording(*owned_, {});
  constexpr int64_t kEvents = 2 * server::ClassWeightSets::kMost;
  for (int64_t event = 1; event <= kEvents; ++event) {
    server::HeadHeader header = Header(kRank0, event, 0, 2);
    header.class_weights = true;
    header.coefficients = true;
    const auto head = Open(header);
    ASSERT_THAT(head, IsOk());
    const std::vector<float> weights(4, static_cast<float>(event));
    ASSERT_THAT((*head)->AppendClassWeights(0, weights), IsOk()) << event;
    ASSERT_THAT(Land(**head), IsOk());
    ASSERT_THAT(StartStatistics(**head).Wait(), IsOk());
    const std::vector<float> max = {99, 99}, sum = {4, 4}, one = {1, 1};
    ASSERT_THAT((*head)->AppendMerged({0, max, sum, one, one, one}), IsOk());
    ASSERT_THAT(StartFinish(**head).Wait(), IsOk());
    Apply(event, 1, 0);
  }
  // What it fell behind with has its class weights still, or is gone with it.
  int64_t taken = 0;
  for (auto next = Next(*recording); next.ok() && *next;
       next = Next(*recording)) {
    const std::vector<RecordedPiece> pieces = Pieces(*recording, 1000, false);
    ASSERT_FALSE(pieces.empty());
    ++taken;
    EXPECT_THAT(pieces[0].class_weights, Each(static_cast<float>(taken)));
    if (taken == kEvents) break;
  }
  EXPECT_GT(taken, 0);
}

TEST_F(HeadRecordingTest, AHeadPartComesWithItsOperands) {
  StartWithSessions();
  const SharedRecording recording = *OpenRecording(*owned_, {});
  ASSERT_THAT(Run(Header(kRank0, 1, 0, 3), 2, 0.5F), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank1, 1, 0, 3)), IsOk());
  Apply(1, 1, 1);
  ASSERT_EQ(*Next(*recording), true);
  // Two tokens of 8 + 12 + 8 bytes fit a piece.
  const std::vector<RecordedPiece> pieces = Pieces(*recording, 56);
  ASSERT_THAT(pieces, SizeIs(3));
  EXPECT_TRUE(pieces[0].head);
  EXPECT_EQ(pieces[0].item_count, 3);
  EXPECT_THAT(pieces[0].ids, ElementsAre(1, 1));
  EXPECT_EQ(pieces[0].payload, Floats({2, 1, 2, 1}));
  EXPECT_EQ(pieces[0].hidden_dtype, kernels::DType::kFp32);
  EXPECT_THAT(pieces[0].max_logits, ElementsAre(0, 0));
  EXPECT_THAT(pieces[0].exp_sums, ElementsAre(4, 4));
  EXPECT_THAT(pieces[0].upstream, ElementsAre(0.5F, 0.5F));
  EXPECT_EQ(pieces[1].first_item, 2);
  EXPECT_THAT(pieces[1].ids, ElementsAre(1));
  EXPECT_FALSE(pieces[2].head);
  EXPECT_THAT(pieces[2].max_logits, IsEmpty());

  const std::vector<RecordedPiece> targets = Pieces(*recording, 56, true);
  ASSERT_THAT(targets, SizeIs(2));
  EXPECT_THAT(targets[0].ids, ElementsAre(1, 1, 1));
  EXPECT_THAT(targets[0].payload, IsEmpty());
  EXPECT_THAT(targets[0].upstream, IsEmpty());
}

}  // namespace
}  // namespace rowhouse::testing
