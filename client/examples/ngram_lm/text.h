#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TEXT_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rowhouse::ngram_lm {

/// The whole of a file, byte by byte.
///
/// Errors:
///   kNotFound  it cannot be read; names it.
absl::StatusOr<std::string> ReadFile(const std::string& path);

/// Replaces a file.
///
/// Errors:
///   kUnavailable  it cannot be written; names it.
absl::Status WriteFile(const std::string& path, std::string_view content);

/// Splits UTF-8 text into the tokens of a word-level model: words, and every
/// mark that stands between them. Line ends and other spaces only separate.
///
/// A word is a longest run of letters and digits; an apostrophe (' or U+2019)
/// between two of them belongs to it. Of the characters beyond ASCII, spaces
/// separate, those of Latin-1's and General Punctuation's and CJK's blocks of
/// punctuation are marks, and all others count as letters. ASCII letters are
/// lower-cased, so that a word at the beginning of a sentence is the same word;
/// other characters are kept as they are.
///
/// Errors:
///   kInvalidArgument  the text is not UTF-8; names the position of the first
///                     bad byte, from 0, and the byte.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view text);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TEXT_H_
