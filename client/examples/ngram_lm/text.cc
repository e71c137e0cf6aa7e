#include "client/examples/ngram_lm/text.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::ngram_lm {
namespace {

enum class Kind : uint8_t { kSpace, kMark, kApostrophe, kLetter };

struct Character {
  size_t size = 0;  // Bytes.
  Kind kind = Kind::kSpace;
};

struct Range {
  uint32_t first;
  uint32_t last;
};

constexpr std::array kSpaces = {
    Range{0x85, 0x85},     Range{0xA0, 0xA0},     Range{0x1680, 0x1680},
    Range{0x2000, 0x200B}, Range{0x2028, 0x2029}, Range{0x202F, 0x202F},
    Range{0x205F, 0x205F}, Range{0x3000, 0x3000}, Range{0xFEFF, 0xFEFF}};
constexpr std::array kMarks = {Range{0xA1, 0xA9},     Range{0xAB, 0xB4},
                               Range{0xB6, 0xB9},     Range{0xBB, 0xBF},
                               Range{0xD7, 0xD7},     Range{0xF7, 0xF7},
                               Range{0x2010, 0x2027}, Range{0x2030, 0x205E},
                               Range{0x3001, 0x3003}, Range{0x3008, 0x3020}};

template <size_t kSize>
bool Contains(const std::array<Range, kSize>& ranges, uint32_t code) {
  for (const Range& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

Kind KindOf(uint32_t code) {
  if (code < 0x80) {
    const auto byte = static_cast<unsigned char>(code);
    if (absl::ascii_isalnum(byte)) return Kind::kLetter;
    if (byte == '\'') return Kind::kApostrophe;
    return absl::ascii_isgraph(byte) ? Kind::kMark : Kind::kSpace;
  }
  if (code == 0x2019) return Kind::kApostrophe;
  if (Contains(kSpaces, code)) return Kind::kSpace;
  return Contains(kMarks, code) ? Kind::kMark : Kind::kLetter;
}

// Bytes of the sequence that begins with `lead`; 0 where none does.
size_t SequenceSize(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// Nothing where the text at `begin` is no character of UTF-8: no overlong
// forms, no surrogates, nothing past U+10FFFF.
std::optional<Character> ReadCharacter(std::string_view text, size_t begin) {
  const auto lead = static_cast<unsigned char>(text[begin]);
  const size_t size = SequenceSize(lead);
  if (size == 0 || size > text.size() - begin) return std::nullopt;
  if (size == 1) return Character{1, KindOf(lead)};
  uint32_t code = lead & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[begin + i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    code = (code << 6) | (byte & 0x3FU);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[size] || surrogate || code > 0x10FFFF) return std::nullopt;
  return Character{size, KindOf(code)};
}

absl::Status BadByte(std::string_view text, size_t position) {
  std::array<char, 8> byte{};
  std::snprintf(byte.data(), byte.size(), "0x%02x",
                static_cast<unsigned char>(text[position]));
  return absl::InvalidArgumentError(absl::StrCat("the text is not UTF-8: byte ",
                                                 position, ", ", byte.data(),
                                                 ", begins no character"));
}

// Whether a letter follows the character that ends at `end`.
bool LetterFollows(std::string_view text, size_t end) {
  if (end >= text.size()) return false;
  const auto next = ReadCharacter(text, end);
  return next.has_value() && next->kind == Kind::kLetter;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  // Not a stream: it would take a folder for an empty file.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), &std::fclose);
  std::string content;
  std::array<char, 1 << 16> block{};
  while (file != nullptr) {
    const size_t size = std::fread(block.data(), 1, block.size(), file.get());
    content.append(block.data(), size);
    if (size == block.size()) continue;
    if (std::ferror(file.get()) == 0) return content;
    break;
  }
  return absl::NotFoundError(absl::StrCat("cannot read ", path));
}

absl::Status WriteFile(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file << content << std::flush;
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(absl::AsciiStrToLower(word));
    word.clear();
  };
  for (size_t begin = 0; begin < text.size();) {
    const auto character = ReadCharacter(text, begin);
    if (!character.has_value()) return BadByte(text, begin);
    const std::string_view bytes = text.substr(begin, character->size);
    begin += character->size;
    const bool inner = character->kind == Kind::kApostrophe && !word.empty() &&
                       LetterFollows(text, begin);
    if (character->kind == Kind::kLetter || inner) {
      word += bytes;
      continue;
    }
    end_word();
    if (character->kind != Kind::kSpace) words.emplace_back(bytes);
  }
  end_word();
  return words;
}

}  // namespace rowhouse::ngram_lm
