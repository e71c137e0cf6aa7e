#include "client/cli/units.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::cli {
namespace {

TEST(UnitsTest, CountsHaveCommas) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(999), "999");
  EXPECT_EQ(Count(1000), "1,000");
  EXPECT_EQ(Count(84'602'880), "84,602,880");
  EXPECT_EQ(Count(-1234), "-1,234");
}

TEST(UnitsTest, BytesHaveThreeDigits) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(1023), "1023 B");
  EXPECT_EQ(Bytes(1024), "1.00 KiB");
  EXPECT_EQ(Bytes(1536), "1.50 KiB");
  EXPECT_EQ(Bytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(Bytes(int64_t{130} << 30), "130 GiB");
}

TEST(UnitsTest, SpansTakeTheirUnit) {
  EXPECT_EQ(Span(absl::Microseconds(850)), "850 us");
  EXPECT_EQ(Span(absl::Microseconds(12'500)), "12.5 ms");
  EXPECT_EQ(Span(absl::Milliseconds(3'200)), "3.20 s");
  EXPECT_EQ(Span(absl::Seconds(59.6)), "1 min 00 s");
  EXPECT_EQ(Span(absl::Seconds(125)), "2 min 05 s");
  EXPECT_EQ(Span(absl::Minutes(62)), "1 h 02 min");
}

TEST(UnitsTest, FiguresHaveThreeDigits) {
  EXPECT_EQ(Figure(0), "0");
  EXPECT_EQ(Figure(0.01234), "0.0123");
  EXPECT_EQ(Figure(9.999), "10.0");
  EXPECT_EQ(Figure(12.34), "12.3");
  EXPECT_EQ(Figure(999.9), "1,000");
  EXPECT_EQ(Figure(12'345.6), "12,346");
  EXPECT_EQ(Figure(-1.5), "-1.50");
}

TEST(UnitsTest, CountsAreRead) {
  EXPECT_EQ(*ParseCount("0"), 0);
  EXPECT_EQ(*ParseCount("65536"), 65536);
  EXPECT_EQ(*ParseCount("64Ki"), 65536);
  EXPECT_EQ(*ParseCount("1M"), 1'000'000);
  EXPECT_EQ(*ParseCount("2G"), 2'000'000'000);
}

TEST(UnitsTest, WhatIsNoCountIsNamed) {
  for (const char* text : {"", "K", "-1", "1.5K", "1k", "ten", " 1", "+1",
                           "9223372036854775807K"}) {
    EXPECT_THAT(ParseCount(text),
                rowhouse::testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                            "wanted a count"))
        << text;
  }
}

}  // namespace
}  // namespace rowhouse::cli
