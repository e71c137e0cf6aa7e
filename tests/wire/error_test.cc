#include "proto/wire/error.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::wire {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(ErrorTest, KeepsCodeMessageReasonAndMetadata) {
  const absl::Status status =
      Error(absl::StatusCode::kFailedPrecondition, "EVENT_AHEAD",
            "event is 9; at most 3", {{"event", "9"}, {"current_event", "1"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()), "event is 9; at most 3");
  const std::optional<ErrorDetails> details = DetailsOf(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, "EVENT_AHEAD");
  EXPECT_THAT(
      details->metadata,
      UnorderedElementsAre(Pair("event", "9"), Pair("current_event", "1")));
  EXPECT_EQ(details->retry_delay, std::nullopt);
  EXPECT_EQ(ReasonOf(status), "EVENT_AHEAD");
}

TEST(ErrorTest, KeepsTheRetryDelay) {
  const absl::Status status =
      Error(absl::StatusCode::kResourceExhausted, "LANE_FULL", "full", {},
            absl::Milliseconds(1500));
  EXPECT_EQ(DetailsOf(status)->retry_delay, absl::Milliseconds(1500));
}

TEST(ErrorTest, TellsAZeroDelayFromNone) {
  const absl::Status status = Error(absl::StatusCode::kResourceExhausted, "R",
                                    "m", {}, absl::ZeroDuration());
  EXPECT_EQ(DetailsOf(status)->retry_delay, absl::ZeroDuration());
}

TEST(ErrorTest, RoundTripsTextsOfAnyBytes) {
  ErrorDetails details;
  details.reason = "";
  details.metadata[""] = "";
  details.metadata["3:a:"] = std::string("\0:\n12:", 6);
  details.metadata["\xff"] = "7";
  details.retry_delay = absl::Nanoseconds(-1);
  const absl::Status status = WithDetails(absl::InternalError("x"), details);
  EXPECT_EQ(DetailsOf(status), details);
}

TEST(ErrorTest, LaterDetailsTakeThePlaceOfEarlierOnes) {
  const absl::Status first =
      Error(absl::StatusCode::kAborted, "FENCED", "m", {{"session", "2"}});
  const absl::Status second = WithDetails(first, {"REWIND", {}, std::nullopt});
  EXPECT_EQ(ReasonOf(second), "REWIND");
  EXPECT_THAT(DetailsOf(second)->metadata, IsEmpty());
  EXPECT_EQ(ReasonOf(first), "FENCED");
}

TEST(ErrorTest, PlainStatusesHaveNoDetails) {
  EXPECT_EQ(DetailsOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(DetailsOf(absl::NotFoundError("no")), std::nullopt);
  EXPECT_EQ(ReasonOf(absl::NotFoundError("no")), "");
}

}  // namespace
}  // namespace rowhouse::wire
