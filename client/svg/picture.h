#ifndef ROWHOUSE_CLIENT_SVG_PICTURE_H_
#define ROWHOUSE_CLIENT_SVG_PICTURE_H_

#include <string>
#include <string_view>
#include <vector>

namespace rowhouse::svg {

/// `text` as it may stand in an element or in an attribute.
std::string Escape(const std::string& text);

/// An SVG document that needs nothing else, on a white ground. Elements lie
/// above those before. All lengths are pixels, from the upper left;
/// `attributes` are written as they are.
class Picture {
 public:
  Picture(int width, int height);

  /// `y` is the letters' foot.
  void Text(double x, double y, std::string_view attributes,
            const std::string& text);
  void Line(double x1, double y1, double x2, double y2,
            std::string_view attributes);
  /// A viewer shows `tip`, if there is one, under the pointer.
  void Rect(double x, double y, double width, double height,
            std::string_view attributes, const std::string& tip = "");
  /// Any element.
  void Add(std::string_view element) { svg_ += element; }

  /// The document; once.
  std::string Finish();

 private:
  std::string svg_;
};

/// Values at a round distance of each other (1, 2 or 5 times a power of ten)
/// that enclose [low, high], about `count` of them.
///
/// REQUIRES: `low < high`, both finite; `count >= 2`.
std::vector<double> RoundTicks(double low, double high, int count);

}  // namespace rowhouse::svg

#endif  // ROWHOUSE_CLIENT_SVG_PICTURE_H_
