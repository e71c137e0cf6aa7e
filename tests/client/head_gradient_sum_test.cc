#include "client/internal/head_gradient_sum.h"

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::internal {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;

std::string Bytes(const std::vector<float>& rows) {
  return {reinterpret_cast<const char*>(rows.data()),
          rows.size() * sizeof(float)};
}

std::vector<float> Result(const HeadGradientSum& sum, size_t count) {
  std::vector<float> out(count, -99);
  EXPECT_THAT(sum.Narrow(DType::kFp32, std::as_writable_bytes(std::span(out))),
              IsOk());
  return out;
}

TEST(HeadGradientSumTest, AddsInSliceOrderWhateverTheOrderOfArrival) {
  // 1e8 + 1 - 1e8 is 0 in fp32; in another order it is 1.
  HeadGradientSum sum(3, 1, 1);
  std::thread third(
      [&] { EXPECT_THAT(sum.Add(2, 0, Bytes({-1e8F})), IsOk()); });
  std::thread second([&] { EXPECT_THAT(sum.Add(1, 0, Bytes({1})), IsOk()); });
  EXPECT_THAT(sum.Add(0, 0, Bytes({1e8F})), IsOk());
  second.join();
  third.join();
  EXPECT_THAT(Result(sum, 1), ElementsAre(0));
}

TEST(HeadGradientSumTest, BeginsFromPositiveZero) {
  HeadGradientSum sum(1, 1, 1);
  ASSERT_THAT(sum.Add(0, 0, Bytes({-0.0F})), IsOk());
  EXPECT_FALSE(std::signbit(Result(sum, 1)[0]));
}

TEST(HeadGradientSumTest, PassesOverRowsThatCameBefore) {
  HeadGradientSum sum(2, 3, 2);
  ASSERT_THAT(sum.Add(0, 0, Bytes({1, 2, 3, 4})), IsOk());
  ASSERT_THAT(sum.Add(1, 0, Bytes({10, 20})), IsOk());
  // Slice 0 is made again, in other messages, and slice 1 too.
  ASSERT_THAT(sum.Add(0, 0, Bytes({1, 2})), IsOk());
  ASSERT_THAT(sum.Add(0, 1, Bytes({3, 4, 5, 6})), IsOk());
  ASSERT_THAT(sum.Add(1, 0, Bytes({10, 20, 30, 40, 50, 60})), IsOk());
  EXPECT_THAT(Result(sum, 6), ElementsAre(11, 22, 33, 44, 55, 66));
}

TEST(HeadGradientSumTest, AFaultEndsTheWaitsOfLaterSlicesAlone) {
  HeadGradientSum sum(3, 1, 1);
  std::thread third([&] {
    EXPECT_THAT(sum.Add(2, 0, Bytes({1})),
                StatusIs(absl::StatusCode::kCancelled, ""));
  });
  sum.Fail(1);
  third.join();
  EXPECT_THAT(sum.Add(0, 0, Bytes({1})), IsOk());
}

TEST(HeadGradientSumTest, NarrowsOnceToNearestEven) {
  HeadGradientSum sum(2, 4, 1);
  // 2^-9 of each slice make 2^-8, half a place of bf16 at 1: a tie; a little
  // more is rounded up. Neither share alone would be.
  ASSERT_THAT(sum.Add(0, 0, Bytes({1 + 0x1p-9F, 1 + 0x1p-9F, 65520, 0})),
              IsOk());
  ASSERT_THAT(sum.Add(1, 0, Bytes({0x1p-9F, 0x1p-9F + 0x1p-20F, 0, 0})),
              IsOk());
  uint16_t out[4];
  ASSERT_THAT(sum.Narrow(DType::kBf16, std::as_writable_bytes(std::span(out))),
              IsOk());
  EXPECT_THAT(out, ElementsAre(0x3f80, 0x3f81, 0x4780, 0));
  ASSERT_THAT(sum.Narrow(DType::kFp16, std::as_writable_bytes(std::span(out))),
              IsOk());
  EXPECT_THAT(out, ElementsAre(0x3c04, 0x3c04, 0x7c00, 0));
}

}  // namespace
}  // namespace rowhouse::client::internal
