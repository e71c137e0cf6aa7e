#include "client/examples/ngram_lm/text.h"

#include <cstdio>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::ngram_lm {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SplitWordsTest, WordsAndMarksAreTokensAndSpacesAreNot) {
  EXPECT_THAT(SplitWords("In the\n beginning,\tGod (who?) 3 days.").value(),
              ElementsAre("in", "the", "beginning", ",", "god", "(", "who", "?",
                          ")", "3", "days", "."));
}

TEST(SplitWordsTest, AnApostropheWithinAWordBelongsToIt) {
  EXPECT_THAT(SplitWords("the LORD's o'clock 'tis boys' a''b").value(),
              ElementsAre("the", "lord's", "o'clock", "'", "tis", "boys", "'",
                          "a", "'", "'", "b"));
  EXPECT_THAT(SplitWords("don\u2019t \u2019").value(),
              ElementsAre("don\u2019t", "\u2019"));
}

TEST(SplitWordsTest, OnlyAsciiIsLowerCased) {
  EXPECT_THAT(SplitWords("\u00c9TAT stra\u00dfe").value(),
              ElementsAre("\u00c9tat", "stra\u00dfe"));
}

TEST(SplitWordsTest, SpacesAndMarksBeyondAsciiAreKnown) {
  EXPECT_THAT(
      SplitWords("\ufeff\u00aba\u00a0b\u00bb \u201cc\u201d\u2014d\u3000e\u3002")
          .value(),
      ElementsAre("\u00ab", "a", "b", "\u00bb", "\u201c", "c", "\u201d",
                  "\u2014", "d", "e", "\u3002"));
}

TEST(SplitWordsTest, AnEmptyTextHasNoWords) {
  EXPECT_THAT(SplitWords("").value(), IsEmpty());
  EXPECT_THAT(SplitWords(" \n").value(), IsEmpty());
}

TEST(SplitWordsTest, TheFirstBadByteIsNamed) {
  const auto refused = [](const std::string& text, const std::string& message) {
    EXPECT_THAT(SplitWords(text),
                StatusIs(absl::StatusCode::kInvalidArgument, message));
  };
  refused("ab\xff", "byte 2, 0xff, begins no character");
  refused("\xc3", "byte 0, 0xc3");              // Cut off.
  refused("\u00e9\xe2\x82x", "byte 2, 0xe2");   // Cut short.
  refused("a\x80", "byte 1, 0x80");             // Begins nowhere.
  refused("\xc0\xaf", "byte 0, 0xc0");          // Overlong.
  refused("\xe0\x80\x80", "byte 0, 0xe0");      // Overlong.
  refused("\xed\xa0\x80", "byte 0, 0xed");      // A surrogate.
  refused("\xf4\x90\x80\x80", "byte 0, 0xf4");  // Past U+10FFFF.
}

TEST(SplitWordsTest, BadBytesAfterAnApostropheAreNamedToo) {
  EXPECT_THAT(SplitWords("a'\xff"),
              StatusIs(absl::StatusCode::kInvalidArgument, "byte 2, 0xff"));
}

TEST(FileTest, WhatIsWrittenIsRead) {
  const std::string path = ::testing::TempDir() + "/ngram_lm_text_test.txt";
  const std::string content("a\0b\r\n", 5);
  ASSERT_THAT(WriteFile(path, content), IsOk());
  EXPECT_EQ(ReadFile(path).value(), content);
  std::remove(path.c_str());
}

TEST(FileTest, AnEmptyFileIsEmpty) {
  const std::string path = ::testing::TempDir() + "/ngram_lm_empty_test.txt";
  ASSERT_THAT(WriteFile(path, ""), IsOk());
  EXPECT_EQ(ReadFile(path).value(), "");
  std::remove(path.c_str());
}

TEST(FileTest, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(ReadFile("/nowhere/text"),
              StatusIs(absl::StatusCode::kNotFound, "/nowhere/text"));
  EXPECT_THAT(ReadFile("/"), StatusIs(absl::StatusCode::kNotFound, "/"));
  EXPECT_THAT(WriteFile("/nowhere/text", "a"),
              StatusIs(absl::StatusCode::kUnavailable, "/nowhere/text"));
}

}  // namespace
}  // namespace rowhouse::ngram_lm
