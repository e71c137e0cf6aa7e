#include "client/examples/ngram_lm/bf16.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::ngram_lm {
namespace {

using ::testing::ElementsAre;

TEST(Bf16Test, WidensExactly) {
  EXPECT_THAT(Widened(std::vector<Bf16>{0x3f80, 0xc040, 0x0001, 0x8000}),
              ElementsAre(1.0F, -3.0F, 0x1p-133F, 0.0F));
}

TEST(Bf16Test, RoundsToTheNearestTiesToEven) {
  constexpr float kStep = 0x1p-7F;  // Between numbers from 1 to 2.
  EXPECT_THAT(
      Rounded(std::vector<float>{1 + kStep / 4, 1 + kStep / 2,
                                 1 + kStep * 3 / 2, -1 - kStep * 3 / 4}),
      ElementsAre(0x3f80, 0x3f80, 0x3f82, 0xbf81));
}

TEST(Bf16Test, CarriesIntoTheExponent) {
  EXPECT_THAT(Rounded(std::vector<float>{std::nextafter(2.0F, 0.0F),
                                         std::numeric_limits<float>::max()}),
              ElementsAre(0x4000, 0x7f80));
}

TEST(Bf16Test, GivesBackWhatItWidened) {
  for (const Bf16 bits :
       std::vector<Bf16>{0x0000, 0x8000, 0x0080, 0x3f81, 0xff7f, 0x7f80}) {
    EXPECT_THAT(Rounded(Widened(std::vector<Bf16>{bits})), ElementsAre(bits));
  }
}

}  // namespace
}  // namespace rowhouse::ngram_lm
