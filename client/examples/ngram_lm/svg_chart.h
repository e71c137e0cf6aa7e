#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_SVG_CHART_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_SVG_CHART_H_

#include <cstdint>
#include <string>
#include <vector>

namespace rowhouse::ngram_lm {

struct ChartPoint {
  double x = 0;
  double y = 0;

  friend bool operator==(const ChartPoint&, const ChartPoint&) = default;
};

/// A line through points of ascending x.
struct ChartLine {
  std::string name;
  std::string color;  ///< As in CSS.
  double width = 2;   ///< Pixels.
  std::vector<ChartPoint> points;
};

/// A dashed horizontal line.
struct ChartLevel {
  std::string name;
  std::string color;
  double y = 0;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartLine> lines;  ///< Later ones are drawn above.
  std::vector<ChartLevel> levels;
  int width = 860;  ///< Pixels.
  int height = 480;
};

/// The chart as an SVG document that needs nothing else. Axes begin and end at
/// round values around all points and levels. Points that are not finite are
/// left out; a chart without any other is drawn empty.
std::string RenderSvg(const Chart& chart);

/// Each y replaced by the mean of those up to `radius` points before and after,
/// fewer at the ends, as many on both sides.
std::vector<ChartPoint> Smooth(const std::vector<ChartPoint>& points,
                               int64_t radius);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_SVG_CHART_H_
