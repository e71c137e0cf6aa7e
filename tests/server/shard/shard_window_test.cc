// What readers of a shard's memory are told, and when it ends.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/buffer.h"
#include "tests/server/shard/pending.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using server::ReadWindow;
using server::SharedRows;
using server::WindowRequest;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

class ShardWindowTest : public ShardTest {
 protected:
  ShardWindowTest() { limits_.one_sided = true; }

  PendingCall<SharedRows> Share() {
    PendingCall<SharedRows> answer;
    owned_->ShareRows(BlockingShard::NewCall(), answer.Callback());
    return answer;
  }

  PendingCall<ReadWindow> StartWindow(
      const WindowRequest& request = {},
      const std::shared_ptr<server::Call>& call = BlockingShard::NewCall()) {
    PendingCall<ReadWindow> answer;
    owned_->OpenWindow(request, call, answer.Callback());
    return answer;
  }

  absl::StatusOr<ReadWindow> Window(const WindowRequest& request = {}) {
    return StartWindow(request).Wait();
  }

  // Maps the shard's memory as another process would.
  void MapAll() {
    const auto shared = Share().Wait();
    ASSERT_THAT(shared, IsOk());
    auto weights = backend_->Map(shared->weights, kernels::MapAccess::kRead);
    auto epoch = backend_->Map(shared->epoch, kernels::MapAccess::kRead);
    ASSERT_THAT(weights, IsOk());
    ASSERT_THAT(epoch, IsOk());
    weights_ = *std::move(weights);
    epoch_ = *std::move(epoch);
  }

  int64_t Epoch() {
    int64_t epoch = 0;
    EXPECT_THAT(backend_->LoadEpoch(epoch_.as<int64_t>(), epoch), IsOk());
    return epoch;
  }

  // Whether `change` ends the windows that were open before it.
  template <typename Change>
  bool Ends(Change change) {
    const auto before = Window();
    EXPECT_THAT(before, IsOk());
    EXPECT_EQ(before->epoch, Epoch());
    change();
    const auto after = Window();
    EXPECT_THAT(after, IsOk());
    EXPECT_EQ(after->epoch, Epoch());
    return after->epoch != before->epoch;
  }

  kernels::Buffer weights_;
  kernels::Buffer epoch_;
};

TEST_F(ShardWindowTest, AShardThatIsNotToBeMappedSaysSo) {
  limits_.one_sided = false;
  Start();
  EXPECT_THAT(Share().Wait(), Fails(kPrecondition, "NOT_OFFERED"));
  EXPECT_THAT(Window(), Fails(kPrecondition, "NOT_OFFERED"));
}

TEST_F(ShardWindowTest, WhateverChangesRowsOrSessionsEndsWindows) {
  StartWithSessions();
  MapAll();
  EXPECT_TRUE(Ends([&] {
    EXPECT_THAT(shard_->Import(3, 1, Floats({5, 6})), IsOk());
  }));
  EXPECT_TRUE(Ends([&] { ApplyEmptyEvent(1); }));
  EXPECT_TRUE(Ends([&] {
    EXPECT_THAT(shard_->Seal(kRank0, 2, 0), IsOk());
    EXPECT_THAT(shard_->Seal(kRank1, 2, 0), IsOk());
    server::EventCommit skip;
    skip.sessions = {1, 1};
    skip.skip = true;
    EXPECT_THAT(shard_->Commit(kRank0, 2, skip), IsOk());
  }));
  EXPECT_TRUE(Ends([&] { EXPECT_THAT(shard_->Reset(), IsOk()); }));
  constexpr server::TrainerSession kSecond{0, 2};
  const auto open = [&] { EXPECT_THAT(shard_->OpenSession(kSecond), IsOk()); };
  EXPECT_TRUE(Ends(open));
  // What changes neither leaves them open; so does the same again.
  EXPECT_FALSE(Ends(open));
  EXPECT_FALSE(Ends([&] {
    EXPECT_THAT(shard_->Push(OneRow(kSecond, 1, 0, 3)), IsOk());
    EXPECT_THAT(shard_->Seal(kSecond, 1, 1), IsOk());
  }));
}

TEST_F(ShardWindowTest, RowsStayAtTheirPlace) {
  StartWithSessions();
  MapAll();
  const auto* const row = weights_.as<float>() + 2 * 7;
  EXPECT_EQ(row[0], 0);
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 7)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 0), IsOk());
  ASSERT_THAT(shard_->Commit(kRank0, 1, Commit()), IsOk());
  ASSERT_EQ(Window()->event, 1);
  EXPECT_EQ(row[0], Row(7)[0]);
  EXPECT_LT(row[0], 0);
  ASSERT_THAT(shard_->Reset(), IsOk());
  EXPECT_EQ(row[0], 0);
  EXPECT_EQ(Window()->event, 0);
}

TEST_F(ShardWindowTest, AWindowWaitsForItsEventAsAPullDoes) {
  StartWithSessions();
  auto waiting = StartWindow({.trainer = kRank1, .exact_event = 1});
  EXPECT_EQ(AppliedEvent(), 0);
  EXPECT_FALSE(waiting.IsDone());
  ApplyEmptyEvent(1);
  EXPECT_EQ(waiting.Wait()->event, 1);
  EXPECT_EQ(Window({.min_event = 1})->event, 1);
  EXPECT_THAT(Window({.exact_event = 0}), Fails(kPrecondition, "EVENT_PAST"));
  auto fenced = StartWindow({.trainer = kRank1, .min_event = 5});
  ASSERT_THAT(shard_->OpenSession({1, 2}), IsOk());
  EXPECT_THAT(fenced.Wait(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(Window({.trainer = kRank1}), Fails(kAborted, "FENCED"));
}

TEST_F(ShardWindowTest, TheEndIsThatOfTheShardOrOfTheCaller) {
  StartWithSessions();
  MapAll();
  Pending<absl::Status> of_caller;
  Pending<absl::Status> of_shard;
  const auto call = BlockingShard::NewCall();
  owned_->AwaitEnd(call, of_caller.Callback());
  owned_->AwaitEnd(BlockingShard::NewCall(), of_shard.Callback());
  ApplyEmptyEvent(1);
  EXPECT_FALSE(of_caller.IsDone());
  call->cancelled = true;
  owned_->NoteCancelled();
  EXPECT_THAT(of_caller.Wait(), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_FALSE(of_shard.IsDone());
  const int64_t before = Epoch();
  owned_->Close(absl::NotFoundError("deleted"));
  EXPECT_THAT(of_shard.Wait(),
              StatusIs(absl::StatusCode::kNotFound, "deleted"));
  EXPECT_NE(Epoch(), before);  // Readers ask, and are told.
  EXPECT_THAT(Window(), StatusIs(absl::StatusCode::kNotFound, "deleted"));
}

}  // namespace
}  // namespace rowhouse::testing
