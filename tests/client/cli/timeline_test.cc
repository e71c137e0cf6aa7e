#include "client/cli/timeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/svg.h"

namespace rowhouse::cli {
namespace {

using rowhouse::testing::IsWellFormed;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Duration Ms(double milliseconds) {
  return absl::Milliseconds(milliseconds);
}

// 926 pixels from 150 on are 100 ms.
Timeline Small() {
  Timeline timeline;
  timeline.title = "TCP & more";
  timeline.note = "two cycles";
  timeline.length = Ms(100);
  timeline.lanes = {
      {"trainer", {{Ms(0), Ms(50), "#111", "embed, 50 ms"}}},
      {"pulls",
       {{Ms(-20), Ms(10), "#222", "cut"}, {Ms(90), Ms(300), "#333", "cut"}}}};
  timeline.marks = {{Ms(50), "event 2"}, {Ms(500), "event 9"}};
  timeline.legend = {{"embed", "#111"}};
  return timeline;
}

TEST(TimelineTest, BarsStandInTheirLanesAndTimes) {
  const std::string svg = RenderSvg(Small());
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"150.0\" y=\"92.0\" width=\"463.00\" "
                             "height=\"18.0\" fill=\"#111\"><title>embed, 50 "
                             "ms</title>"));
  EXPECT_THAT(svg, HasSubstr(">TCP &amp; more<"));
  for (const char* text :
       {">two cycles<", ">trainer<", ">pulls<", ">embed<", ">100<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(TimelineTest, BarsAreCutAtTheEdges) {
  const std::string svg = RenderSvg(Small());
  EXPECT_THAT(svg, HasSubstr("<rect x=\"150.0\" y=\"116.0\" width=\"92.60\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"983.4\" y=\"116.0\" width=\"92.60\""));
}

TEST(TimelineTest, WhatLiesOutsideIsLeftOut) {
  Timeline timeline = Small();
  timeline.lanes[0].bars = {{Ms(120), Ms(130), "#777", "late"},
                            {Ms(-9), Ms(-5), "#888", "early"}};
  const std::string svg = RenderSvg(timeline);
  EXPECT_THAT(svg, Not(HasSubstr("late")));
  EXPECT_THAT(svg, Not(HasSubstr("early")));
  EXPECT_THAT(svg, HasSubstr(">event 2<"));
  EXPECT_THAT(svg, Not(HasSubstr(">event 9<")));
}

TEST(TimelineTest, AMarksNameStaysWithinThePicture) {
  Timeline timeline = Small();
  timeline.marks = {{Ms(50), "event 2"}, {Ms(100), "event 3"}};
  const std::string svg = RenderSvg(timeline);
  EXPECT_THAT(svg, HasSubstr("<text x=\"616.0\" y=\"86.0\" font-size=\"10\">"
                             "event 2<"));
  EXPECT_THAT(svg, HasSubstr("<text x=\"1073.0\" y=\"86.0\" font-size=\"10\" "
                             "text-anchor=\"end\">event 3<"));
}

TEST(TimelineTest, AShortBarIsStillToBeSeen) {
  Timeline timeline = Small();
  timeline.lanes[0].bars = {{Ms(10), Ms(10.001), "#777", "short"}};
  EXPECT_THAT(RenderSvg(timeline), HasSubstr("width=\"0.60\""));
}

}  // namespace
}  // namespace rowhouse::cli
