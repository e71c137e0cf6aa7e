#include "client/svg/picture.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/svg.h"

namespace rowhouse::svg {
namespace {

using rowhouse::testing::IsWellFormed;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PictureTest, ElementsStandInTheirOrderAndTextsAreEscaped) {
  Picture picture(30, 20);
  picture.Rect(1, 2, 3.125, 4, "fill=\"red\"");
  picture.Rect(5, 6, 7, 8, "", "a < b");
  picture.Line(0, 1, 2, 3, "stroke=\"#999\"");
  picture.Text(9, 10, "", "\"x\" & y");
  const std::string svg = picture.Finish();
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr("width=\"30\" height=\"20\""));
  EXPECT_THAT(
      svg,
      HasSubstr("<rect x=\"1.0\" y=\"2.0\" width=\"3.12\" height=\"4.0\" "
                "fill=\"red\"/>\n"
                "<rect x=\"5.0\" y=\"6.0\" width=\"7.00\" height=\"8.0\" >"
                "<title>a &lt; b</title></rect>\n"
                "<line x1=\"0.0\" y1=\"1.0\" x2=\"2.0\" y2=\"3.0\" "
                "stroke=\"#999\"/>\n"
                "<text x=\"9.0\" y=\"10.0\" >&quot;x&quot; &amp; y</text>\n"));
}

TEST(RoundTicksTest, EncloseTheRangeAtARoundDistance) {
  EXPECT_THAT(RoundTicks(0, 10, 6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundTicks(3.4, 8.3, 6), ElementsAre(3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(RoundTicks(0, 803, 5), ElementsAre(0, 500, 1000));
  EXPECT_THAT(RoundTicks(-0.15, 0.1, 6),
              ElementsAre(DoubleEq(-0.15), DoubleEq(-0.1), DoubleEq(-0.05), 0,
                          DoubleEq(0.05), DoubleEq(0.1)));
}

}  // namespace
}  // namespace rowhouse::svg
