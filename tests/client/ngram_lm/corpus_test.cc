#include "client/examples/ngram_lm/corpus.h"

#include <string>
#include <vector>

#include "client/examples/ngram_lm/vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::ngram_lm {
namespace {

using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;

TEST(VocabularyTest, TheMostFrequentComeFirstAndEqualsInOrderOfAppearance) {
  const std::vector<std::string> words = {"z", "b", "a", "b", "a", "c"};
  const Vocabulary vocabulary(words, 10);
  ASSERT_EQ(vocabulary.size(), 5);
  EXPECT_EQ(vocabulary.word(Vocabulary::kUnknown), "<unk>");
  EXPECT_EQ(vocabulary.word(1), "b");
  EXPECT_EQ(vocabulary.word(2), "a");
  EXPECT_EQ(vocabulary.word(3), "z");
  EXPECT_EQ(vocabulary.word(4), "c");
}

TEST(VocabularyTest, WordsBeyondItsSizeAreUnknown) {
  const std::vector<std::string> words = {"a", "b", "b", "c"};
  const Vocabulary vocabulary(words, 3);
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_THAT(vocabulary.Encode(words), ElementsAre(2, 1, 1, 0));
  const std::vector<std::string> others = {"d", "<unk>"};
  EXPECT_THAT(vocabulary.Encode(others), ElementsAre(0, 0));
}

constexpr CorpusOptions kSmall = {
    .max_vocabulary_size = 100, .block_token_count = 4, .held_out_interval = 2};

TEST(CorpusTest, EveryNthBlockIsHeldOutAndTheRestIsJoined) {
  const auto corpus =
      MakeCorpus("a b c d  e f g h  a a a a  d d d d  b c", kSmall);
  ASSERT_TRUE(corpus.ok());
  EXPECT_THAT(corpus->training, ElementsAre(1, 2, 3, 4, 1, 1, 1, 1, 2, 3));
  EXPECT_THAT(corpus->held_out,
              ElementsAre(ElementsAre(0, 0, 0, 0), ElementsAre(4, 4, 4, 4)));
}

TEST(CorpusTest, AnUnfinishedBlockIsNeverHeldOut) {
  const auto corpus = MakeCorpus("a b c d  e f g h  a a a a  d d d", kSmall);
  ASSERT_TRUE(corpus.ok());
  EXPECT_EQ(corpus->training.size(), 11U);
  EXPECT_EQ(corpus->held_out.size(), 1U);
}

TEST(CorpusTest, WordsOfTheHeldOutPartAloneAreNotInTheVocabulary) {
  const auto corpus = MakeCorpus("a b a b  c c c c", kSmall);
  ASSERT_TRUE(corpus.ok());
  EXPECT_EQ(corpus->vocabulary.size(), 3);
}

TEST(CorpusTest, ATextThatIsTooSmallIsRefused) {
  EXPECT_THAT(MakeCorpus("a b c d e f g", kSmall),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the text has 7 words and marks; it must have 8"));
  EXPECT_THAT(MakeCorpus(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                       "has 0 words and marks; it must have "
                                       "20480"));
}

TEST(CorpusTest, BadTextAndOptionsAreRefused) {
  const auto refused = [](const std::string& text, const CorpusOptions& options,
                          const std::string& message) {
    EXPECT_THAT(MakeCorpus(text, options),
                StatusIs(absl::StatusCode::kInvalidArgument, message));
  };
  refused("a\xff", kSmall, "byte 1");
  refused("a", {.max_vocabulary_size = 1}, "vocabulary's size is 1");
  refused("a", {.block_token_count = 3}, "a block has 3 tokens");
  refused("a", {.held_out_interval = 1}, "interval is 1");
}

}  // namespace
}  // namespace rowhouse::ngram_lm
