#include "client/examples/ngram_lm/svg_chart.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/svg/picture.h"

namespace rowhouse::ngram_lm {
namespace {

constexpr double kLeft = 64;
constexpr double kRight = 24;
constexpr double kTop = 48;
constexpr double kBottom = 56;
constexpr int kTickCount = 8;

bool IsFinite(const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

// Round values of one axis, and where they fall, in pixels.
class Axis {
 public:
  Axis(double low, double high, double first_pixel, double last_pixel)
      : ticks_(low < high ? svg::RoundTicks(low, high, kTickCount)
                          : svg::RoundTicks(low - 0.5, low + 0.5, 2)),
        first_pixel_(first_pixel),
        last_pixel_(last_pixel) {}

  const std::vector<double>& ticks() const { return ticks_; }

  double Pixel(double value) const {
    return first_pixel_ + (value - ticks_.front()) /
                              (ticks_.back() - ticks_.front()) *
                              (last_pixel_ - first_pixel_);
  }

 private:
  std::vector<double> ticks_;
  double first_pixel_;
  double last_pixel_;
};

// The least and greatest of what is shown.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

// Draws onto one page; the order of the calls is that of the layers.
class Page {
 public:
  Page(const Chart& chart, const Extent& x, const Extent& y)
      : chart_(chart),
        right_(chart.width - kRight),
        bottom_(chart.height - kBottom),
        x_(x.low, x.high, kLeft, right_),
        y_(y.low, y.high, bottom_, kTop),
        picture_(chart.width, chart.height) {}

  std::string Draw() {
    Frame();
    for (const ChartLevel& level : chart_.levels) Level(level);
    for (const ChartLine& line : chart_.lines) Line(line);
    Legend();
    return picture_.Finish();
  }

 private:
  void Frame() {
    for (const double tick : x_.ticks()) {
      const double x = x_.Pixel(tick);
      picture_.Line(x, bottom_, x, bottom_ + 5, "stroke=\"#999\"");
      picture_.Text(x, bottom_ + 19, "text-anchor=\"middle\"",
                    absl::StrCat(tick));
    }
    for (const double tick : y_.ticks()) {
      const double y = y_.Pixel(tick);
      picture_.Line(kLeft, y, right_, y, "stroke=\"#eee\"");
      picture_.Text(kLeft - 8, y + 4, "text-anchor=\"end\"",
                    absl::StrCat(tick));
    }
    picture_.Line(kLeft, bottom_, right_, bottom_, "stroke=\"#999\"");
    picture_.Line(kLeft, kTop, kLeft, bottom_, "stroke=\"#999\"");
    const double middle = (kLeft + right_) / 2;
    picture_.Text(middle, 26,
                  "text-anchor=\"middle\" font-size=\"16\" fill=\"#111\"",
                  chart_.title);
    picture_.Text(middle, chart_.height - 14.0, "text-anchor=\"middle\"",
                  chart_.x_label);
    const double center = (kTop + bottom_) / 2;
    picture_.Text(18, center,
                  absl::StrFormat("text-anchor=\"middle\" "
                                  "transform=\"rotate(-90 18 %.1f)\"",
                                  center),
                  chart_.y_label);
  }

  void Level(const ChartLevel& level) {
    if (!std::isfinite(level.y)) return;
    const double y = y_.Pixel(level.y);
    picture_.Line(kLeft, y, right_, y,
                  absl::StrCat("stroke=\"", svg::Escape(level.color),
                               "\" stroke-dasharray=\"6 4\""));
  }

  void Line(const ChartLine& line) {
    std::string points;
    for (const ChartPoint& point : line.points) {
      if (!IsFinite(point)) continue;
      absl::StrAppend(
          &points, points.empty() ? "" : " ",
          absl::StrFormat("%.1f,%.1f", x_.Pixel(point.x), y_.Pixel(point.y)));
    }
    picture_.Add(absl::StrCat(
        "<polyline fill=\"none\" stroke=\"", svg::Escape(line.color),
        "\" stroke-width=\"", line.width,
        "\" stroke-linejoin=\"round\" points=\"", points, "\"/>\n"));
  }

  void Legend() {
    double y = kTop + 14;
    const auto entry = [&](const std::string& name, const std::string& color,
                           std::string_view style) {
      const double x = right_ - 250;
      picture_.Line(x, y - 4, x + 26, y - 4,
                    absl::StrCat("stroke=\"", svg::Escape(color), "\" ",
                                 std::string(style)));
      picture_.Text(x + 34, y, "", name);
      y += 18;
    };
    for (const ChartLine& line : chart_.lines) {
      entry(line.name, line.color,
            absl::StrCat("stroke-width=\"", line.width, "\""));
    }
    for (const ChartLevel& level : chart_.levels) {
      entry(level.name, level.color, "stroke-dasharray=\"6 4\"");
    }
  }

  const Chart& chart_;
  double right_;
  double bottom_;
  Axis x_;
  Axis y_;
  svg::Picture picture_;
};

}  // namespace

std::string RenderSvg(const Chart& chart) {
  Extent x;
  Extent y;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) {
      if (!IsFinite(point)) continue;
      x.Include(point.x);
      y.Include(point.y);
    }
  }
  for (const ChartLevel& level : chart.levels) y.Include(level.y);
  if (x.empty()) x = {0, 1};
  if (y.empty()) y = {0, 1};
  return Page(chart, x, y).Draw();
}

std::vector<ChartPoint> Smooth(const std::vector<ChartPoint>& points,
                               int64_t radius) {
  std::vector<ChartPoint> smooth = points;
  const auto count = static_cast<int64_t>(points.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t reach = std::min({radius, i, count - 1 - i});
    double sum = 0;
    for (int64_t j = i - reach; j <= i + reach; ++j) {
      sum += points[static_cast<size_t>(j)].y;
    }
    smooth[static_cast<size_t>(i)].y = sum / static_cast<double>(2 * reach + 1);
  }
  return smooth;
}

}  // namespace rowhouse::ngram_lm
