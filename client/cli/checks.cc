#include "client/cli/checks.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::cli {
namespace {

constexpr size_t kMostNameLetters = 63;

// What is no text is shown as `\xff`.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::Utf8SafeCHexEscape(text), "'");
}

bool IsOfNames(char c) {
  return absl::ascii_islower(static_cast<unsigned char>(c)) ||
         absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-';
}

bool IsPort(const std::string& text) {
  int32_t port = 0;
  return !text.empty() &&
         absl::ascii_isdigit(static_cast<unsigned char>(text[0])) &&
         absl::SimpleAtoi(text, &port) && port >= 1 && port <= 65535;
}

std::string CheckName(const std::string& text, std::string_view kind) {
  if (!text.empty() && text.size() <= kMostNameLetters &&
      absl::ascii_islower(static_cast<unsigned char>(text[0])) &&
      std::all_of(text.begin(), text.end(), IsOfNames)) {
    return "";
  }
  return absl::StrCat(Quoted(text), " is no ", std::string(kind),
                      "'s name, wanted 1 to ", kMostNameLetters,
                      " characters from [a-z0-9_-], the first one a letter");
}

}  // namespace

Check AtLeast(int64_t least) {
  return [least](const std::string& text) -> std::string {
    int64_t value = 0;
    if (absl::SimpleAtoi(text, &value) && value >= least) return "";
    return absl::StrCat(Quoted(text), ", wanted a whole number of at least ",
                        least);
  };
}

std::string CheckTableName(const std::string& text) {
  return CheckName(text, "table");
}

std::string CheckCheckpointName(const std::string& text) {
  return CheckName(text, "checkpoint");
}

std::string CheckAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool has_both = colon != text.npos && colon > 0;
  const std::string last = has_both ? text.substr(colon + 1) : "";
  const bool is_unix =
      text.starts_with("unix:") || text.starts_with("unix-abstract:");
  if (is_unix ? !last.empty() : IsPort(last)) return "";
  return absl::StrCat(Quoted(text),
                      ", wanted HOST:PORT, a port of 1 to 65535, or unix:PATH");
}

}  // namespace rowhouse::cli
