#include "kernels/ngram_hash.h"

#include <vector>

#include "gmock/gmock.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;
using ::testing::ElementsAre;

constexpr int64_t kRowCount = 84602880;
constexpr int64_t kSignRowCount = 8192;
const std::vector<int32_t> kSample = {50256, 464,   2068, 7586,
                                      21831, 50256, 50256};

template <typename IdOf>
std::vector<int64_t> ForEachPosition(const std::vector<int32_t>& tokens,
                                     IdOf id_of) {
  std::vector<int64_t> ids;
  for (size_t t = 0; t < tokens.size(); ++t) {
    ids.push_back(id_of(tokens.data(), static_cast<int64_t>(t)));
  }
  return ids;
}

std::vector<int64_t> Bigrams(const std::vector<int32_t>& tokens) {
  return ForEachPosition(tokens, [](const int32_t* list, int64_t t) {
    return BigramRowId(list, t, NgramLayout::Of(kRowCount));
  });
}

std::vector<int64_t> Trigrams(const std::vector<int32_t>& tokens) {
  return ForEachPosition(tokens, [](const int32_t* list, int64_t t) {
    return TrigramRowId(list, t, NgramLayout::Of(kRowCount));
  });
}

std::vector<int64_t> BigramSigns(const std::vector<int32_t>& tokens) {
  return ForEachPosition(tokens, [](const int32_t* list, int64_t t) {
    return BigramSignRow(list, t, kSignRowCount);
  });
}

std::vector<int64_t> TrigramSigns(const std::vector<int32_t>& tokens) {
  return ForEachPosition(tokens, [](const int32_t* list, int64_t t) {
    return TrigramSignRow(list, t, kSignRowCount);
  });
}

TEST(NgramHashTest, GivesThePublishedRowIds) {
  EXPECT_THAT(Bigrams(kSample),
              ElementsAre(42301439, 30057605, 36955973, 25891877, 38010350,
                          25053104, 20052728));
  EXPECT_THAT(Trigrams(kSample),
              ElementsAre(84602879, 84602879, 79010554, 60889994, 59548946,
                          67212682, 60420883));
  EXPECT_THAT(Bigrams({0, 0, 0, 0}), ElementsAre(42301439, 13221301, 0, 0));
  EXPECT_THAT(Trigrams({0, 0, 0, 0}),
              ElementsAre(84602879, 84602879, 42301440, 42301440));
  EXPECT_THAT(Bigrams({1, 2, 3, 4}),
              ElementsAre(42301439, 13280871, 97765, 199105));
  EXPECT_THAT(Trigrams({1, 2, 3, 4}),
              ElementsAre(84602879, 84602879, 42409948, 42474729));
  EXPECT_THAT(Bigrams({11, 13}), ElementsAre(42301439, 13158840));
}

TEST(NgramHashTest, GivesThePublishedSignRows) {
  EXPECT_THAT(BigramSigns(kSample),
              ElementsAre(0, 3392, 2524, 1506, 6399, 4845, 1728));
  EXPECT_THAT(TrigramSigns(kSample),
              ElementsAre(0, 0, 6652, 794, 191, 2311, 1943));
}

TEST(NgramHashTest, ProductsWrapAndRemaindersAreNeverNegative) {
  EXPECT_EQ(static_cast<int32_t>(WrappingProduct(60961, 50256)), -1231311280);
  EXPECT_EQ(static_cast<int32_t>(WrappingProduct(27191, 42301439)), -832807479);
  EXPECT_EQ(FloorModulo(static_cast<uint32_t>(-832807479), 42301439), 13221301);
  EXPECT_EQ(FloorModulo(static_cast<uint32_t>(-10), 5), 0);
}

TEST(NgramHashTest, TheFirstTokenChangesNoBigramRowAndOneTrigramRow) {
  std::vector<int32_t> other = kSample;
  other[0] = 17;
  EXPECT_EQ(Bigrams(other), Bigrams(kSample));
  std::vector<int64_t> expected = Trigrams(kSample);
  const std::vector<int64_t> got = Trigrams(other);
  EXPECT_NE(got[2], expected[2]);
  expected[2] = got[2];
  EXPECT_EQ(got, expected);
  EXPECT_NE(BigramSigns(other)[1], BigramSigns(kSample)[1]);
  EXPECT_NE(TrigramSigns(other)[2], TrigramSigns(kSample)[2]);
}

TEST(NgramHashTest, HashingNeverGivesAReservedRow) {
  Random random(7);
  SCOPED_TRACE(random.Trace());
  for (const int64_t row_count : {int64_t{4}, int64_t{5}, int64_t{12}}) {
    const NgramLayout layout = NgramLayout::Of(row_count);
    EXPECT_EQ(layout.trigram_reserved(), row_count - 1);
    EXPECT_EQ(layout.bigram_reserved(), layout.half - 1);
    std::vector<int32_t> tokens(2000);
    for (int32_t& token : tokens) {
      token = static_cast<int32_t>(random.Bits());
    }
    for (int64_t t = 2; t < 2000; ++t) {
      const int64_t bigram = BigramRowId(tokens.data(), t, layout);
      ASSERT_TRUE(bigram >= 0 && bigram < layout.bigram_reserved()) << bigram;
      const int64_t trigram = TrigramRowId(tokens.data(), t, layout);
      ASSERT_TRUE(trigram >= layout.half && trigram < row_count - 1) << trigram;
    }
  }
}

}  // namespace
}  // namespace rowhouse::kernels
