#ifndef ROWHOUSE_TESTS_TESTING_SVG_H_
#define ROWHOUSE_TESTS_TESTING_SVG_H_

#include <string>
#include <string_view>
#include <vector>

namespace rowhouse::testing {

/// Whether every element is closed in order, and `<`, `>` and `&` stand for
/// nothing else. Enough for a document that has only elements and text.
inline bool IsWellFormed(std::string_view svg) {
  std::vector<std::string> open;
  size_t at = 0;
  while (at < svg.size()) {
    const size_t begin = svg.find('<', at);
    const std::string_view text = svg.substr(at, begin - at);
    if (text.find('>') != text.npos) return false;
    if (begin == svg.npos) break;
    const size_t end = svg.find('>', begin);
    if (end == svg.npos) return false;
    const std::string_view tag = svg.substr(begin + 1, end - begin - 1);
    if (tag.find('<') != tag.npos) return false;
    const std::string name(tag.substr(0, tag.find_first_of(" />", 1)));
    if (tag.starts_with("/")) {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty();
}

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_TESTING_SVG_H_
