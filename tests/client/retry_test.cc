#include "client/internal/retry.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/client/fake_clock.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::internal {
namespace {

using rowhouse::testing::FakeClock;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

RetryOptions Options() {
  return {.initial_backoff = absl::Milliseconds(10),
          .max_backoff = absl::Milliseconds(50),
          .multiplier = 2,
          .jitter = 0};
}

class RetryTest : public ::testing::Test {
 protected:
  // Ends with each of `results` in turn.
  absl::Status Run(const std::vector<absl::Status>& results,
                   absl::Duration timeout = absl::Seconds(10)) {
    return RetryUntil(clock_, Options(),
                      {clock_.Now() + timeout, &cancellation_},
                      [&] { return results[attempt_count_++]; });
  }

  FakeClock clock_;
  Cancellation cancellation_;
  size_t attempt_count_ = 0;
};

TEST_F(RetryTest, SuccessIsNotRepeated) {
  EXPECT_THAT(Run({absl::OkStatus()}), IsOk());
  EXPECT_EQ(attempt_count_, 1);
}

TEST_F(RetryTest, WaitsGrowUpToTheLimit) {
  const absl::Status away = absl::UnavailableError("away");
  EXPECT_THAT(Run({away, away, away, away, away, absl::OkStatus()}), IsOk());
  EXPECT_THAT(clock_.waits(),
              ElementsAre(absl::Milliseconds(10), absl::Milliseconds(20),
                          absl::Milliseconds(40), absl::Milliseconds(50),
                          absl::Milliseconds(50)));
}

TEST_F(RetryTest, FaultsThatWillNotPassAreReturned) {
  EXPECT_THAT(Run({absl::InvalidArgumentError("bad")}),
              StatusIs(absl::StatusCode::kInvalidArgument, "bad"));
  EXPECT_THAT(clock_.waits(), IsEmpty());
}

TEST_F(RetryTest, ExhaustedResourcesWithoutADelayAreReturned) {
  EXPECT_THAT(Run({absl::ResourceExhaustedError("full")}),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
}

TEST_F(RetryTest, TheServersDelayIsWaitedOut) {
  const absl::Status full =
      wire::Error(absl::StatusCode::kResourceExhausted, "LANE_FULL", "full", {},
                  absl::Milliseconds(300));
  EXPECT_THAT(Run({full, absl::OkStatus()}), IsOk());
  EXPECT_THAT(clock_.waits(), ElementsAre(absl::Milliseconds(300)));
}

TEST_F(RetryTest, APendingEventIsAskedForAtOnceAfterTheServersWait) {
  const absl::Status pending = wire::Error(absl::StatusCode::kDeadlineExceeded,
                                           "EVENT_PENDING", "pending");
  const absl::Status status = RetryUntil(
      clock_, Options(), {clock_.Now() + absl::Seconds(65), nullptr}, [&] {
        ++attempt_count_;
        clock_.Advance(absl::Seconds(30));
        return pending;
      });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, "pending"));
  EXPECT_EQ(attempt_count_, 3);
  EXPECT_THAT(clock_.waits(), IsEmpty());
}

TEST_F(RetryTest, AnotherDeadlineThatPassedIsReturned) {
  EXPECT_THAT(Run({absl::DeadlineExceededError("too late")}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "too late"));
}

TEST_F(RetryTest, TheDeadlineEndsItWithTheLastFault) {
  const std::vector<absl::Status> away(100, absl::UnavailableError("away"));
  EXPECT_THAT(Run(away, absl::Milliseconds(100)),
              StatusIs(absl::StatusCode::kUnavailable, "away"));
  EXPECT_EQ(attempt_count_, 4);  // After 0, 10, 30 and 70 ms.
}

TEST_F(RetryTest, ACallOfTheSameNameUnderWayIsRepeatedAndAFenceIsNot) {
  EXPECT_TRUE(IsRetryable(
      wire::Error(absl::StatusCode::kAborted, "BUSY", "under way")));
  EXPECT_FALSE(
      IsRetryable(wire::Error(absl::StatusCode::kAborted, "FENCED", "fenced")));
}

TEST_F(RetryTest, ACancelledCallIsNotMade) {
  cancellation_.Cancel();
  EXPECT_THAT(Run({absl::OkStatus()}),
              StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(attempt_count_, 0);
}

TEST_F(RetryTest, JitterShortensAWaitByUpToItsShare) {
  RetryOptions options = Options();
  options.jitter = 0.5;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Backoff backoff(options, seed);
    const absl::Duration wait = backoff.Next(absl::UnavailableError("away"));
    EXPECT_GE(wait, absl::Milliseconds(5));
    EXPECT_LE(wait, absl::Milliseconds(10));
  }
}

}  // namespace
}  // namespace rowhouse::client::internal
