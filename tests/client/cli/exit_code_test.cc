#include "client/cli/exit_code.h"

#include <string>
#include <string_view>

#include "client/push_log/file_fault.h"
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
  EXPECT_THAT(AdviceOn(pending, "words", "pull"),
              HasSubstr("`rowhouse events words`"));
}

TEST(ExitCodeTest, ADeadlineWhileWaitingIsTheEvents) {
  const absl::Status late = absl::DeadlineExceededError("late");
  EXPECT_EQ(WhileWaiting(late, std::nullopt), late);
  EXPECT_EQ(wire::ReasonOf(WhileWaiting(late, 3)), "EVENT_PENDING");
  const absl::Status other = absl::InternalError("x");
  EXPECT_EQ(WhileWaiting(other, 3), other);
  EXPECT_TRUE(WhileWaiting(absl::OkStatus(), 3).ok());
}

TEST(ExitCodeTest, AFileThatCannotBeUsedIsNoServerAway) {
  const auto fault = [](std::string_view reason) {
    // EHOSTDOWN of a file that lies on another machine, say.
    return client::push_log::FileFault(absl::StatusCode::kUnavailable, reason,
                                       "a.rhlog", "what was found");
  };
  for (const std::string_view reason :
       {client::push_log::kNoFile, client::push_log::kNotReadable,
        client::push_log::kDamaged, client::push_log::kOtherVersion,
        client::push_log::kFileExists, client::push_log::kNotWritable}) {
    SCOPED_TRACE(reason);
    EXPECT_EQ(ExitCodeOf(fault(reason)), kBadArguments);
    const std::string advice = AdviceOn(fault(reason), "words", "pull");
    EXPECT_NE(advice, "");
    EXPECT_THAT(advice, ::testing::Not(HasSubstr("--timeout")));
  }
  EXPECT_THAT(AdviceOn(fault(client::push_log::kFileExists), "", ""),
              HasSubstr("--overwrite"));
}

TEST(ExitCodeTest, ARecorderThatFellBehindIsToldTheFlag) {
  const absl::Status behind =
      wire::Error(absl::StatusCode::kResourceExhausted,
                  wire::reasons::kRecorderBehind, "it did not fit");
  EXPECT_EQ(ExitCodeOf(behind), kRefused);
  EXPECT_THAT(AdviceOn(behind, "words", "pull"), HasSubstr("--buffer-bytes"));
}

TEST(ExitCodeTest, AFullDiskIsNoServerAway) {
  const absl::Status full =
      wire::Error(absl::StatusCode::kUnavailable, wire::reasons::kNotWritable,
                  "0-of-2.safetensors: no space left");
  EXPECT_EQ(ExitCodeOf(full), kRefused);
  EXPECT_THAT(AdviceOn(full, "", "checkpoint create"), HasSubstr("room"));
}

TEST(ExitCodeTest, AnEventThatIsPastIsToldByCommand) {
  const absl::Status past =
      wire::Error(absl::StatusCode::kFailedPrecondition,
                  wire::reasons::kEventPast, "event 3 is past");
  EXPECT_THAT(AdviceOn(past, "words", "import"), HasSubstr("rowhouse reset"));
  EXPECT_THAT(AdviceOn(past, "", "checkpoint create"), HasSubstr("--tables="));
}

TEST(ExitCodeTest, AdviceNamesTheTable) {
  const absl::Status differs =
      wire::Error(absl::StatusCode::kAlreadyExists,
                  wire::reasons::kTableDiffers, "another dim");
  EXPECT_THAT(AdviceOn(differs, "words", "pull"),
              HasSubstr("`rowhouse delete words`"));
  EXPECT_THAT(AdviceOn(absl::UnavailableError(""), "", ""),
              HasSubstr("`rowhouse status`"));
  EXPECT_EQ(AdviceOn(absl::InternalError(""), "", ""), "");
}

TEST(ExitCodeTest, WrongArgumentsAlwaysHaveANextStep) {
  EXPECT_EQ(AdviceOn(BadArgument("x"), "words", "pull"),
            "`rowhouse pull --help` tells what there is");
  EXPECT_EQ(AdviceOn(BadArgument("x"), "", ""),
            "`rowhouse --help` tells what there is");
  EXPECT_THAT(AdviceOn(wire::Error(absl::StatusCode::kOutOfRange,
                                   "A_REASON_WITHOUT_ADVICE", "x"),
                       "words", "import"),
              HasSubstr("`rowhouse import --help`"));
  EXPECT_THAT(AdviceOn(BadArgument("x", kBadRowFile), "words", "import"),
              HasSubstr("`rowhouse describe words`"));
  EXPECT_EQ(ExitCodeOf(BadArgument("x", kBadRowFile)), kBadArguments);
}

}  // namespace
}  // namespace rowhouse::cli
