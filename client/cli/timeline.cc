#include "client/cli/timeline.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "client/svg/picture.h"

namespace rowhouse::cli {
namespace {

constexpr int kWidth = 1100;
constexpr double kLeft = 150;
constexpr double kRight = kWidth - 24;
constexpr double kTop = 92;
constexpr double kLaneHeight = 24;
constexpr double kBarHeight = 18;
constexpr double kBottom = 44;
constexpr double kThinnest = 0.6;  // Of a bar.
constexpr double kMarkWidth = 90;
constexpr int kTicks = 9;

double BottomOf(const Timeline& timeline) {
  return kTop + kLaneHeight * static_cast<double>(timeline.lanes.size());
}

// Draws onto one picture.
class Drawing {
 public:
  explicit Drawing(const Timeline& timeline)
      : timeline_(timeline),
        bottom_(BottomOf(timeline)),
        picture_(kWidth, static_cast<int>(bottom_ + kBottom)) {}

  std::string Draw() {
    picture_.Text(12, 24, "font-size=\"16\" fill=\"#111\"", timeline_.title);
    picture_.Text(12, 44, "fill=\"#666\"", timeline_.note);
    Legend();
    Axis();
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
      Lane(timeline_.lanes[i], kTop + kLaneHeight * static_cast<double>(i));
    }
    for (const Timeline::Mark& mark : timeline_.marks) Mark(mark);
    return picture_.Finish();
  }

 private:
  double Pixel(absl::Duration at) const {
    const double share = absl::FDivDuration(at, timeline_.length);
    return kLeft + std::clamp(share, 0.0, 1.0) * (kRight - kLeft);
  }

  void Legend() {
    double x = 12;
    for (const Timeline::Color& entry : timeline_.legend) {
      picture_.Rect(x, 55, 11, 11,
                    absl::StrCat("fill=\"", svg::Escape(entry.color), "\""));
      picture_.Text(x + 15, 65, "", entry.name);
      x += 28 + 6.3 * static_cast<double>(entry.name.size());
    }
  }

  void Axis() {
    const double milliseconds = absl::ToDoubleMilliseconds(timeline_.length);
    for (const double tick : svg::RoundTicks(0, milliseconds, kTicks)) {
      if (tick > milliseconds) break;
      const double x = Pixel(absl::Milliseconds(tick));
      picture_.Line(x, kTop - 4, x, bottom_ + 4, "stroke=\"#e4e4e4\"");
      picture_.Text(x, bottom_ + 18, "text-anchor=\"middle\"",
                    absl::StrCat(tick));
    }
    picture_.Text(kRight, bottom_ + 36, "text-anchor=\"end\" fill=\"#666\"",
                  "milliseconds");
  }

  void Lane(const Timeline::Lane& lane, double y) {
    picture_.Text(kLeft - 8, y + 14, "text-anchor=\"end\"", lane.name);
    picture_.Line(kLeft, y + kLaneHeight - 3, kRight, y + kLaneHeight - 3,
                  "stroke=\"#eee\"");
    for (const Timeline::Bar& bar : lane.bars) {
      if (bar.end < absl::ZeroDuration() || bar.begin > timeline_.length) {
        continue;
      }
      const double left = Pixel(bar.begin);
      picture_.Rect(
          left, y, std::max(Pixel(bar.end) - left, kThinnest), kBarHeight,
          absl::StrCat("fill=\"", svg::Escape(bar.color), "\""), bar.tip);
    }
  }

  void Mark(const Timeline::Mark& mark) {
    if (mark.at < absl::ZeroDuration() || mark.at > timeline_.length) return;
    const double x = Pixel(mark.at);
    picture_.Line(x, kTop - 10, x, bottom_,
                  "stroke=\"#333\" stroke-dasharray=\"2 3\"");
    const bool at_edge = x + kMarkWidth > kWidth;
    picture_.Text(
        at_edge ? x - 3 : x + 3, kTop - 6,
        at_edge ? "font-size=\"10\" text-anchor=\"end\"" : "font-size=\"10\"",
        mark.name);
  }

  const Timeline& timeline_;
  const double bottom_;
  svg::Picture picture_;
};

}  // namespace

std::string RenderSvg(const Timeline& timeline) {
  return Drawing(timeline).Draw();
}

}  // namespace rowhouse::cli
