#ifndef ROWHOUSE_CLIENT_CLI_TIMELINE_H_
#define ROWHOUSE_CLIENT_CLI_TIMELINE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace rowhouse::cli {

/// A time line: what went on when, in lanes above each other.
struct Timeline {
  struct Bar {
    absl::Duration begin;  ///< From the picture's left edge on.
    absl::Duration end;
    std::string color;  ///< As in CSS.
    std::string tip;    ///< Shown under the pointer.
  };
  struct Lane {
    std::string name;
    std::vector<Bar> bars;
  };
  struct Mark {  ///< A line across all lanes.
    absl::Duration at;
    std::string name;
  };
  struct Color {
    std::string name;
    std::string color;
  };

  std::string title;
  std::string note;       ///< Below the title.
  absl::Duration length;  ///< Of the picture; above zero.
  std::vector<Lane> lanes;
  std::vector<Mark> marks;
  std::vector<Color> legend;
};

/// The picture as an SVG document that needs nothing else. Bars are cut at its
/// edges; a short one is still to be seen.
std::string RenderSvg(const Timeline& timeline);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TIMELINE_H_
