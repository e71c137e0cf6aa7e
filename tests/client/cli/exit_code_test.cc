#include "client/cli/exit_code.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::cli {
namespace {

using ::testing::HasSubstr;

TEST(ExitCodeTest, ACodeTellsWhoHasToAct) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::OutOfRangeError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 3);
}

TEST(ExitCodeTest, AnEventThatIsPendingIsNoServerAway) {
  const absl::Status pending =
      wire::Error(absl::StatusCode::kDeadlineExceeded,
                  wire::reasons::kEventPending, "event 3 is open");
  EXPECT_EQ(ExitCodeOf(pending), 1);
  EXPECT_THAT(AdviceOn(pending, "words"), HasSubstr("`rowhouse events words`"));
}

TEST(ExitCodeTest, ADeadlineWhileWaitingIsTheEvents) {
  const absl::Status late = absl::DeadlineExceededError("late");
  EXPECT_EQ(WhileWaiting(late, std::nullopt), late);
  EXPECT_EQ(wire::ReasonOf(WhileWaiting(late, 3)), "EVENT_PENDING");
  const absl::Status other = absl::InternalError("x");
  EXPECT_EQ(WhileWaiting(other, 3), other);
  EXPECT_TRUE(WhileWaiting(absl::OkStatus(), 3).ok());
}

TEST(ExitCodeTest, AdviceNamesTheTable) {
  const absl::Status differs =
      wire::Error(absl::StatusCode::kAlreadyExists,
                  wire::reasons::kTableDiffers, "another dim");
  EXPECT_THAT(AdviceOn(differs, "words"), HasSubstr("`rowhouse delete words`"));
  EXPECT_THAT(AdviceOn(absl::UnavailableError(""), ""),
              HasSubstr("`rowhouse status`"));
  EXPECT_EQ(AdviceOn(absl::InternalError(""), ""), "");
}

}  // namespace
}  // namespace rowhouse::cli
