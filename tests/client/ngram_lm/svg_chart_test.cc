#include "client/examples/ngram_lm/svg_chart.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/svg.h"

namespace rowhouse::ngram_lm {
namespace {

using rowhouse::testing::IsWellFormed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 100 x 100 pixels of plot: (64, 48) to (164, 148).
Chart SmallChart() {
  Chart chart;
  chart.title = "loss";
  chart.width = 64 + 100 + 24;
  chart.height = 48 + 100 + 56;
  chart.lines = {{.name = "held out",
                  .color = "#123",
                  .width = 2,
                  .points = {{0, 0}, {5, 10}, {10, 5}}}};
  return chart;
}

TEST(SvgChartTest, PointsFallWhereTheAxesSay) {
  EXPECT_THAT(RenderSvg(SmallChart()),
              HasSubstr("points=\"64.0,148.0 114.0,48.0 164.0,98.0\""));
}

TEST(SvgChartTest, LevelsAreDrawnAtTheirHeightAndWidenTheAxis) {
  Chart chart = SmallChart();
  chart.levels = {{.name = "unigram", .color = "#999", .y = 20}};
  const std::string svg = RenderSvg(chart);
  EXPECT_THAT(svg, HasSubstr("<line x1=\"64.0\" y1=\"48.0\" x2=\"164.0\" "
                             "y2=\"48.0\" stroke=\"#999\" stroke-dasharray"));
  EXPECT_THAT(svg, HasSubstr("points=\"64.0,148.0 114.0,98.0 164.0,123.0\""));
}

TEST(SvgChartTest, TitleLabelsTicksAndLegendAreThere) {
  Chart chart = SmallChart();
  chart.x_label = "steps";
  chart.y_label = "nats";
  chart.levels = {{.name = "unigram", .color = "#999", .y = 3}};
  const std::string svg = RenderSvg(chart);
  for (const char* text : {">loss<", ">steps<", ">nats<", ">held out<",
                           ">unigram<", ">0<", ">10<", ">4<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(SvgChartTest, AnyTextGivesAWellFormedDocument) {
  Chart chart = SmallChart();
  chart.title = "a < b & \"c\" > d";
  chart.lines[0].name = "</svg>";
  const std::string svg = RenderSvg(chart);
  EXPECT_TRUE(IsWellFormed(svg)) << svg;
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot; &gt; d"));
  EXPECT_FALSE(IsWellFormed("<svg><g></svg>"));
  EXPECT_FALSE(IsWellFormed("<svg>a > b</svg>"));
}

TEST(SvgChartTest, ChartsWithLittleOrNothingToShowAreDrawn) {
  Chart chart = SmallChart();
  chart.lines[0].points = {{3, 4}};
  EXPECT_TRUE(IsWellFormed(RenderSvg(chart)));
  chart.lines[0].points = {{1, NAN}, {INFINITY, 1}};
  const std::string svg = RenderSvg(chart);
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_TRUE(IsWellFormed(RenderSvg(Chart())));
}

TEST(SmoothTest, TakesTheMeanOfNeighboursOnBothSides) {
  const std::vector<ChartPoint> points = {
      {0, 9}, {1, 0}, {2, 3}, {3, 3}, {4, 9}};
  EXPECT_THAT(
      Smooth(points, 2),
      ElementsAre(ChartPoint{0, 9}, ChartPoint{1, 4}, ChartPoint{2, 4.8},
                  ChartPoint{3, 5}, ChartPoint{4, 9}));
  EXPECT_EQ(Smooth(points, 0), points);
  EXPECT_TRUE(Smooth({}, 3).empty());
}

}  // namespace
}  // namespace rowhouse::ngram_lm
