// Who ends a call that the lane revokes.

#include "server/service/call_turn.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using rowhouse::testing::IsOk;

const absl::Status kReason = absl::AbortedError("revoked");

class CallTurnTest : public ::testing::Test {
 protected:
  void End() {
    turn_.End([this] { ++ends_; });
  }
  void Start() {
    turn_.Start([this] { ++starts_; });
  }

  CallTurn turn_;
  int ends_ = 0;
  int starts_ = 0;
};

TEST_F(CallTurnTest, ACallEndsOnce) {
  Start();
  End();
  End();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(starts_, 1);
}

TEST_F(CallTurnTest, NothingStartsAfterTheEnd) {
  End();
  Start();
  EXPECT_EQ(starts_, 0);
  EXPECT_FALSE(turn_.EnterShard());
}

TEST_F(CallTurnTest, TheLaneEndsACallThatIsNotInTheShard) {
  EXPECT_TRUE(turn_.Revoke(kReason));
}

// The lane has decided to end the call and has not come to do so: work that is
// handed over now would outlive it.
TEST_F(CallTurnTest, NoWorkBeginsBetweenARevocationAndTheEnd) {
  EXPECT_TRUE(turn_.Revoke(kReason));
  EXPECT_FALSE(turn_.EnterShard());
  End();
  EXPECT_FALSE(turn_.EnterShard());
  EXPECT_EQ(ends_, 1);
}

TEST_F(CallTurnTest, WorkOfTheShardEndsWithWhatTheCallWasRevokedWith) {
  ASSERT_TRUE(turn_.EnterShard());
  EXPECT_FALSE(turn_.Revoke(kReason));
  EXPECT_EQ(turn_.LeaveShard(), kReason);
  EXPECT_FALSE(turn_.EnterShard());
}

TEST_F(CallTurnTest, WithoutARevocationTheCallGoesOn) {
  ASSERT_TRUE(turn_.EnterShard());
  EXPECT_THAT(turn_.LeaveShard(), IsOk());
  Start();
  EXPECT_EQ(starts_, 1);
  EXPECT_TRUE(turn_.EnterShard());
}

}  // namespace
}  // namespace rowhouse::server
