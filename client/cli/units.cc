#include "client/cli/units.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rowhouse::cli {

std::string Count(int64_t count) {
  std::string digits = absl::StrCat(count);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string Bytes(int64_t size_bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (std::llabs(size_bytes) < 1024) return absl::StrCat(size_bytes, " B");
  auto value = static_cast<double>(size_bytes) / 1024;
  size_t unit = 0;
  // 1023.5 would be shown as 1024.
  while (std::abs(value) >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(Figure(value), " ", kUnits[unit]);
}

std::string Span(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds < 0.9995e-3) return absl::StrCat(Figure(seconds * 1e6), " us");
  if (seconds < 0.9995) return absl::StrCat(Figure(seconds * 1e3), " ms");
  if (seconds < 59.5) return absl::StrCat(Figure(seconds), " s");
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) {
    return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  }
  return absl::StrFormat("%d h %02d min", whole / 3600, whole % 3600 / 60);
}

std::string Figure(double value) {
  const double size = std::abs(value);
  if (!(size > 0)) return "0";
  if (!std::isfinite(value)) return absl::StrCat(value);
  if (size >= 999.5) return Count(std::llround(value));
  // Digits after the point, so that three are significant.
  int digits = 2 - static_cast<int>(std::floor(std::log10(size)));
  std::string text = absl::StrFormat("%.*f", digits, value);
  // Rounded up to a power of ten: one digit fewer.
  if (std::abs(std::strtod(text.c_str(), nullptr)) >=
      std::pow(10, 3 - digits)) {
    text = absl::StrFormat("%.*f", --digits, value);
  }
  return text;
}

absl::StatusOr<int64_t> ParseCount(std::string_view text) {
  struct Suffix {
    std::string_view name;
    int64_t factor;
  };
  constexpr std::array<Suffix, 6> kSuffixes = {{{"Ki", int64_t{1} << 10},
                                                {"Mi", int64_t{1} << 20},
                                                {"Gi", int64_t{1} << 30},
                                                {"K", 1'000},
                                                {"M", 1'000'000},
                                                {"G", 1'000'000'000}}};
  std::string_view digits = text;
  int64_t factor = 1;
  for (const Suffix& suffix : kSuffixes) {
    if (!text.ends_with(suffix.name)) continue;
    digits.remove_suffix(suffix.name.size());
    factor = suffix.factor;
    break;
  }
  int64_t count = 0;
  const bool starts_with_digit =
      !digits.empty() && digits[0] >= '0' && digits[0] <= '9';
  if (!starts_with_digit || !absl::SimpleAtoi(std::string(digits), &count) ||
      __builtin_mul_overflow(count, factor, &count)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "', wanted a count such as 65536, 64Ki or 1M"));
  }
  return count;
}

}  // namespace rowhouse::cli
