#include "server/shard/sessions.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Detail;
using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
const absl::Time kStart = absl::UnixEpoch();

TEST(SessionsTest, ANewerSessionFencesTheOlder) {
  Sessions sessions;
  EXPECT_EQ(*sessions.Open({3, 1}, 7, kStart), Sessions::Opening::kNew);
  EXPECT_THAT(sessions.Check({3, 1}), IsOk());
  EXPECT_EQ(*sessions.Open({3, 5}, 8, kStart), Sessions::Opening::kNew);
  EXPECT_THAT(sessions.Check({3, 5}), IsOk());
  const absl::Status fenced = sessions.Check({3, 1});
  EXPECT_THAT(fenced, Fails(kAborted, "FENCED"));
  EXPECT_EQ(Detail(fenced, "newest_session"), "5");
}

TEST(SessionsTest, RanksHaveSessionsOfTheirOwn) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 4}, 1, kStart), IsOk());
  ASSERT_THAT(sessions.Open({1, 2}, 1, kStart), IsOk());
  EXPECT_THAT(sessions.Check({0, 4}), IsOk());
  EXPECT_THAT(sessions.Check({1, 2}), IsOk());
}

TEST(SessionsTest, TheSameOwnerMayRepeatItsOpening) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 1}, 7, kStart), IsOk());
  EXPECT_EQ(*sessions.Open({0, 1}, 7, kStart), Sessions::Opening::kRepeated);
}

TEST(SessionsTest, ANumberThatAnotherOwnerHasIsFenced) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 1}, 7, kStart), IsOk());
  EXPECT_THAT(sessions.Open({0, 1}, 8, kStart), Fails(kAborted, "FENCED"));
  EXPECT_THAT(sessions.Check({0, 1}), IsOk());
}

TEST(SessionsTest, ANumberThatHasBeenPassedIsFenced) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 2}, 7, kStart), IsOk());
  EXPECT_THAT(sessions.Open({0, 1}, 7, kStart), Fails(kAborted, "FENCED"));
}

TEST(SessionsTest, NumbersBeginWithOne) {
  Sessions sessions;
  EXPECT_THAT(sessions.Open({0, 0}, 7, kStart), Fails(kInvalid, "BAD_SESSION"));
  EXPECT_THAT(sessions.Describe(kStart, absl::Seconds(1)), IsEmpty());
}

TEST(SessionsTest, ANumberFarAheadIsRefusedSoThatASuccessorHasOne) {
  Sessions sessions;
  EXPECT_THAT(sessions.Open({0, INT64_MAX}, 7, kStart),
              Fails(kInvalid, "BAD_SESSION"));
  EXPECT_THAT(sessions.Open({0, 1'000'001}, 7, kStart),
              Fails(kInvalid, "BAD_SESSION"));
  EXPECT_THAT(sessions.Open({0, 1'000'000}, 7, kStart), IsOk());
  EXPECT_THAT(sessions.Open({0, 2'000'000}, 8, kStart), IsOk());
}

TEST(SessionsTest, ASessionThatWasNeverOpenedIsUnknown) {
  Sessions sessions;
  EXPECT_THAT(sessions.Check({0, 1}), Fails(kPrecondition, "NO_SESSION"));
  EXPECT_THAT(sessions.Check({0, 0}), Fails(kPrecondition, "NO_SESSION"));
  ASSERT_THAT(sessions.Open({0, 1}, 7, kStart), IsOk());
  EXPECT_THAT(sessions.Check({0, 2}), Fails(kPrecondition, "NO_SESSION"));
}

TEST(SessionsTest, ClosedSessionsKeepTheirNumbers) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 3}, 7, kStart), IsOk());
  sessions.CloseAll();
  EXPECT_THAT(sessions.Check({0, 3}), Fails(kAborted, "FENCED"));
  EXPECT_THAT(sessions.Renew({0, 3}, kStart), Fails(kAborted, "FENCED"));
  EXPECT_THAT(sessions.Open({0, 3}, 7, kStart), Fails(kAborted, "FENCED"));
  EXPECT_THAT(sessions.Open({0, 4}, 7, kStart), IsOk());
}

TEST(SessionsTest, ALeaseLastsFromTheLastRenewal) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 1}, 7, kStart), IsOk());
  ASSERT_THAT(sessions.Renew({0, 1}, kStart + absl::Seconds(20)), IsOk());
  const auto at = [&](int64_t seconds) {
    return sessions.Describe(kStart + absl::Seconds(seconds),
                             absl::Seconds(30));
  };
  ASSERT_THAT(at(50), SizeIs(1));
  EXPECT_EQ(at(50)[0].idle, absl::Seconds(30));
  EXPECT_FALSE(at(50)[0].lease_expired);
  EXPECT_TRUE(at(51)[0].lease_expired);
  EXPECT_EQ(at(51)[0].trainer, (TrainerSession{0, 1}));
}

TEST(SessionsTest, AnExpiredLeaseAloneFencesNobody) {
  Sessions sessions;
  ASSERT_THAT(sessions.Open({0, 1}, 7, kStart), IsOk());
  EXPECT_THAT(sessions.Renew({0, 1}, kStart + absl::Hours(9)), IsOk());
}

}  // namespace
}  // namespace rowhouse::server
