#include "kernels/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"

namespace rowhouse::kernels {
namespace {

// The literals below come from an independent implementation in Python, with
// integers of any size.

ContentSum WordsOf(const std::vector<float>& row) {
  std::vector<uint64_t> words((row.size() * sizeof(float) + 7) / 8);
  std::memcpy(words.data(), row.data(), row.size() * sizeof(float));
  ContentSum sum;
  for (size_t i = 0; i < words.size(); ++i) {
    sum += WordContent(words[i], WordSecret(static_cast<int64_t>(i)));
  }
  return sum;
}

TEST(HashTest, MixesAsSplitMix64) {
  EXPECT_EQ(Mix64(0), 0U);
  EXPECT_EQ(Mix64(1), 0x5692161d100b05e5U);
  EXPECT_EQ(Mix64(kGolden), 0xe220a8397b1dcdafU);  // SplitMix64's first of 0.
}

TEST(HashTest, HashesSeedAndTwoIndices) {
  EXPECT_EQ(Hash3(0, 0, 0), 0xa706dd2f4d197e6fU);
  EXPECT_EQ(Hash3(42, 7, 5), 0x3b59d870c451d49dU);
  EXPECT_EQ(Hash3(42, 84602879, 767), 0x855054514bcf7f14U);
}

TEST(HashTest, InitialValuesAreStated) {
  const auto bits = [](int64_t row, int64_t column) {
    return std::bit_cast<uint32_t>(UniformInitial(42, 0.05F, row, column));
  };
  EXPECT_EQ(bits(0, 0), 0xbc806012U);
  EXPECT_EQ(bits(7, 5), 0xbcdbad4bU);
  EXPECT_EQ(bits(84602879, 767), 0x3b080873U);
}

TEST(HashTest, InitialValuesFillTheOpenInterval) {
  float least = 0;
  float greatest = 0;
  double sum = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const float x = UniformInitial(1, 1.0F, i, 0);
    least = std::min(least, x);
    greatest = std::max(greatest, x);
    sum += x;
  }
  EXPECT_GT(least, -1.0F);
  EXPECT_LT(least, -0.999F);
  EXPECT_LT(greatest, 1.0F);
  EXPECT_GT(greatest, 0.999F);
  EXPECT_NEAR(sum / kCount, 0.0, 0.01);
}

TEST(HashTest, WordsAreMixedWithTheirSecrets) {
  EXPECT_EQ(WordSecret(0),
            (ContentSum{0xe220a8397b1dcdafU, 0x9f8c483a1cd5b002U}));
  EXPECT_EQ(WordSecret(1),
            (ContentSum{0x6e789e6aa1b965f4U, 0x69e8ac67ee6f63dcU}));
  EXPECT_EQ(WordContent(0x0123456789abcdefU, WordSecret(0)),
            (ContentSum{0x60e6e9555ef29ce7U, 0x5dcd9065a0079608U}));
}

TEST(HashTest, RowContentCoversPositionAndPaddedWords) {
  const ContentSum words = WordsOf({1.0F, -2.0F, 0.5F});
  EXPECT_EQ(words, (ContentSum{0xcc242911520e72ffU, 0x23d533186ecb6df8U}));
  EXPECT_EQ(RowContent(3, words),
            (ContentSum{0xef3256b4d2c13ab5U, 0x6337b761b0643490U}));
}

TEST(HashTest, IdContentCoversPositionAndId) {
  EXPECT_EQ(IdContent(2, 84602879),
            (ContentSum{0xa898c34e51a9b864U, 0xce5587d4c273b51fU}));
}

TEST(HashTest, RowDigestCoversIdWeightsAndSecondMoment) {
  const ContentSum words = WordsOf({1.0F, -2.0F, 0.5F});
  const uint64_t digest = RowDigest(5, words, 0x3f10f0e0);
  EXPECT_EQ(digest, 0x6db6e59fadf4072fU);
  EXPECT_NE(RowDigest(6, words, 0x3f10f0e0), digest);
  EXPECT_NE(RowDigest(5, words, 0x3f10f0e1), digest);
  EXPECT_NE(RowDigest(5, WordsOf({1.0F, 2.0F, 0.5F}), 0x3f10f0e0), digest);
}

TEST(HashTest, HistoryDigestCoversEventsInTheirPlaces) {
  const std::vector<float> beta2 = {0.0F, 0.95F, 1.0F};
  const std::vector<float> exchanged = {0.0F, 1.0F, 0.95F};
  EXPECT_EQ(HistoryDigest(beta2.data(), 0), 0U);
  EXPECT_EQ(HistoryDigest(beta2.data(), 2), 0xfe2eaf9c8947eb06U);
  EXPECT_NE(HistoryDigest(exchanged.data(), 2), 0xfe2eaf9c8947eb06U);
}

}  // namespace
}  // namespace rowhouse::kernels
