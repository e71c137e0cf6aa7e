#include "client/cli/push_log_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::cli {
namespace {

using client::push_log::LogInfo;
using client::push_log::RecordReport;
using ::testing::HasSubstr;

TEST(PushLogTextTest, EventsAreNamedByTheirNumber) {
  EXPECT_EQ(EventsText(67, 67), "no event");
  EXPECT_EQ(EventsText(67, 68), "event 68");
  EXPECT_EQ(EventsText(0, 10), "events 1 to 10");
}

TEST(PushLogTextTest, ARecordingTellsItsDigest) {
  RecordReport report;
  report.end_digest = client::TableDigest{0xabc, 3};
  EXPECT_EQ(EndDigestText(report, "words"),
            "digest 0000000000000abc at event 3\n");
}

TEST(PushLogTextTest, ARecordingTellsWhyItHasNoDigest) {
  RecordReport report;
  report.last_event = 3;
  EXPECT_EQ(EndDigestText(report, "words"), "");  // None was wanted.
  report.digest_fault = absl::UnavailableError("a server is silent");
  EXPECT_EQ(EndDigestText(report, "words"), "no digest: a server is silent\n");
  report.digest_fault =
      wire::Error(absl::StatusCode::kFailedPrecondition,
                  wire::reasons::kEventPast, "it is at event 5");
  EXPECT_THAT(EndDigestText(report, "words"),
              HasSubstr("table words has gone on past event 3; --until=EVENT"));
}

TEST(PushLogTextTest, HeadPartsComeWithTheirArithmetic) {
  LogInfo info;
  info.arithmetic = {"cpu, amx", "cuda", "cpu, amx"};
  info.spec.shard_count = 3;
  EXPECT_EQ(ArithmeticText(info), "");  // No head part.
  info.counts.head_part_count = 1;
  EXPECT_EQ(ArithmeticText(info),
            "head parts of shards 0, 2 recorded with cpu, amx\n"
            "head parts of shard 1 recorded with cuda\n"
            "equal bits of a replay are sure only with the same, on the same 3 "
            "slices\n");
}

}  // namespace
}  // namespace rowhouse::cli
