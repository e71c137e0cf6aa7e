#include "client/svg/picture.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace rowhouse::svg {

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

Picture::Picture(int width, int height)
    : svg_(absl::StrCat(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width,
          "\" height=\"", height, "\" viewBox=\"0 0 ", width, " ", height,
          "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n",
          "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n")) {}

void Picture::Text(double x, double y, std::string_view attributes,
                   const std::string& text) {
  absl::StrAppendFormat(&svg_, "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x,
                        y, std::string(attributes), Escape(text));
}

void Picture::Line(double x1, double y1, double x2, double y2,
                   std::string_view attributes) {
  absl::StrAppendFormat(
      &svg_, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1,
      y1, x2, y2, std::string(attributes));
}

void Picture::Rect(double x, double y, double width, double height,
                   std::string_view attributes, const std::string& tip) {
  absl::StrAppendFormat(
      &svg_, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" %s", x,
      y, width, height, std::string(attributes));
  if (tip.empty()) {
    svg_ += "/>\n";
  } else {
    absl::StrAppend(&svg_, "><title>", Escape(tip), "</title></rect>\n");
  }
}

std::string Picture::Finish() {
  svg_ += "</svg>\n";
  return std::move(svg_);
}

std::vector<double> RoundTicks(double low, double high, int count) {
  const double wanted = (high - low) / (count - 1);
  const double power = std::pow(10.0, std::floor(std::log10(wanted)));
  double distance = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= wanted * (1 - 1e-9)) {
      distance = factor * power;
      break;
    }
  }
  const auto first = static_cast<int64_t>(std::floor(low / distance + 1e-9));
  const auto last = static_cast<int64_t>(std::ceil(high / distance - 1e-9));
  std::vector<double> ticks;
  for (int64_t i = first; i <= last; ++i) {
    ticks.push_back(static_cast<double>(i) * distance);
  }
  return ticks;
}

}  // namespace rowhouse::svg
