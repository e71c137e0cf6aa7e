#include <set>

#include "kernels/ngram_hash.h"
#include "tests/kernels/backend_conformance.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;
using ::testing::ElementsAre;

TEST_P(BackendTest, AWantListHasEachIdOfAllStepsOnceInOrder) {
  const auto first = Array<int32_t>({50256, 464, 2068, 7586, 21831});
  const auto second = Array<int32_t>({7});
  const auto want = Array(std::vector<int64_t>(12, -1));
  int64_t count = -9;
  ASSERT_THAT(backend_->NgramWantList(
                  std::vector<std::span<const int32_t>>{
                      first.span(), {}, second.span(), first.span()},
                  84602880, want.span(), count),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(count, 9);
  EXPECT_THAT(want.Download(),
              ElementsAre(25891877, 30057605, 36955973, 38010350, 42301439,
                          59548946, 60889994, 79010554, 84602879, -1, -1, -1));
}

TEST_P(BackendTest, AWantListWithoutRoomKeepsItsCount) {
  const auto tokens = Array<int32_t>({50256, 464, 2068});
  // One more than there is room for.
  const auto want = Array(std::vector<int64_t>(3, -1));
  int64_t count = -9;
  const std::vector<std::span<const int32_t>> steps = {tokens.span()};
  ASSERT_THAT(
      backend_->NgramWantList(steps, 84602880, want.span().first(2), count),
      IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(count, 5);
  EXPECT_THAT(want.Download(), ElementsAre(30057605, 36955973, -1));
  ASSERT_THAT(backend_->NgramWantList({}, 84602880, {}, count), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(count, 0);
}

TEST_P(BackendTest, WantListsAreTheSortedDistinctRowIds) {
  Random random(87);
  SCOPED_TRACE(random.Trace());
  // Tables of less than a word, of about a tile, and of many.
  for (const int64_t rows : {4, 31, 131071, 131072, 131073, 10575360}) {
    SCOPED_TRACE(rows);
    std::vector<std::vector<int32_t>> tokens(3);
    std::set<int64_t> expected;
    for (std::vector<int32_t>& step : tokens) {
      step.resize(static_cast<size_t>(random.Integer(0, 20000)));
      for (int32_t& token : step) {
        token = static_cast<int32_t>(random.Integer(0, 300));
      }
      for (int64_t t = 0; t < std::ssize(step); ++t) {
        expected.insert(BigramRowId(step.data(), t, NgramLayout::Of(rows)));
        expected.insert(TrigramRowId(step.data(), t, NgramLayout::Of(rows)));
      }
    }
    const auto first = Array(tokens[0]);
    const auto second = Array(tokens[1]);
    const auto third = Array(tokens[2]);
    const auto want = Array(std::vector<int64_t>(expected.size(), -1));
    int64_t count = -9;
    ASSERT_THAT(backend_->NgramWantList(
                    std::vector<std::span<const int32_t>>{
                        first.span(), second.span(), third.span()},
                    rows, want.span(), count),
                IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(count, std::ssize(expected));
    EXPECT_TRUE(want.Download() ==
                std::vector<int64_t>(expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace rowhouse::kernels
