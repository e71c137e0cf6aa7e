#include "client/cli/token_source.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Lt;

constexpr int64_t kCount = 100000;

int64_t Occurrences(const std::vector<int32_t>& tokens, int32_t token) {
  return std::count(tokens.begin(), tokens.end(), token);
}

TEST(TokenSourceTest, TokensRepeatForASeedAndNotForAnother) {
  const auto tokens = TokenSource(TokenLaw::kZipf, 1).Next(100);
  EXPECT_EQ(TokenSource(TokenLaw::kZipf, 1).Next(100), tokens);
  EXPECT_NE(TokenSource(TokenLaw::kZipf, 2).Next(100), tokens);
}

TEST(TokenSourceTest, TokensAreInTheVocabulary) {
  for (const TokenLaw law : {TokenLaw::kUniform, TokenLaw::kZipf}) {
    EXPECT_THAT(TokenSource(law, 3).Next(kCount),
                Each(AllOf(Ge(0), Lt(TokenSource::kVocabulary))));
  }
}

// Means are kCount / (n * 11.4); the bounds are ten deviations away.
TEST(TokenSourceTest, TheNthTokenIsAsSeldomAsZipfSays) {
  const auto tokens = TokenSource(TokenLaw::kZipf, 4).Next(kCount);
  EXPECT_NEAR(static_cast<double>(Occurrences(tokens, 0)), 8768, 900);
  EXPECT_NEAR(static_cast<double>(Occurrences(tokens, 9)), 877, 300);
  EXPECT_NEAR(static_cast<double>(Occurrences(tokens, 99)), 88, 88);
}

TEST(TokenSourceTest, UniformTokensAreAlike) {
  const auto tokens = TokenSource(TokenLaw::kUniform, 5).Next(kCount);
  EXPECT_LT(Occurrences(tokens, 0), 30);
  // Of so many draws 43,413 differ, on average.
  EXPECT_NEAR(static_cast<double>(
                  std::set<int32_t>(tokens.begin(), tokens.end()).size()),
              43413, 1000);
}

}  // namespace
}  // namespace rowhouse::cli
