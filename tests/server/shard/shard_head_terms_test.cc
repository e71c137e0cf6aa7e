// Head calls whose loss has more terms than plain cross entropy.

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/head_fixture.h"

namespace rowhouse::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HeadTermsTest : public HeadTest {
 protected:
  static server::HeadHeader WithAllTerms(server::HeadHeader header) {
    header.softcap = 2;
    header.class_weights = true;
    header.weighted_logit_sums = true;
    header.predicted = true;
    header.coefficients = true;
    return header;
  }

  // All phases of one token, with p = 1 and t = 1/2.
  absl::Status RunTerms(server::HeadCall& head,
                        const std::vector<float>& class_weights,
                        float smoothing) {
    absl::Status status = head.AppendClassWeights(0, class_weights);
    if (status.ok()) status = Land(head);
    if (status.ok()) status = StartStatistics(head).Wait().status();
    if (!status.ok()) return status;
    const std::vector<float> max = {0}, sum = {4}, upstream = {1},
                             target = {0.5F}, smooth = {smoothing};
    status = head.AppendMerged({0, max, sum, upstream, target, smooth});
    return status.ok() ? StartFinish(head).Wait().status() : status;
  }
};

// With zero weights p = 1/4 - u * w[v] - (v == 1 ? 1/2 : 0), and no slope of
// the softcap but 1.
TEST_F(HeadTermsTest, TermsOfTheLossReachTheEvent) {
  StartWithSessions();
  const auto head = Open(WithAllTerms(Header(kRank0, 1)));
  ASSERT_THAT(head, IsOk());
  ASSERT_THAT(RunTerms(**head, {0, 1, 2, 0.5F}, 0.25F), IsOk());
  std::vector<float> max(1), sums(1), targets(1), weighted(1), gradient(2);
  std::vector<int64_t> predicted(1);
  ASSERT_THAT(
      (*head)->ReadStatistics(0, {max, sums, targets, weighted, predicted}),
      IsOk());
  EXPECT_THAT(weighted, ElementsAre(0));
  EXPECT_THAT(predicted, ElementsAre(0));
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 0));
  EXPECT_THAT(Row(0), ElementsAre(-1, -1));  // 0.25
  EXPECT_THAT(Row(1), ElementsAre(1, 1));    // -0.5
  EXPECT_THAT(Row(2), ElementsAre(1, 1));    // -0.25
  EXPECT_THAT(Row(3), ElementsAre(-1, -1));  // 0.125
}

TEST_F(HeadTermsTest, APartOfOtherTermsDiffers) {
  StartWithSessions();
  const std::vector<float> weights = {0, 1, 2, 0.5F};
  const server::HeadHeader header = WithAllTerms(Header(kRank0, 1));
  const auto run = [&](const server::HeadHeader& with,
                       const std::vector<float>& class_weights,
                       float smoothing) {
    const auto head = Open(with);
    return head.ok() ? RunTerms(**head, class_weights, smoothing)
                     : head.status();
  };
  ASSERT_THAT(run(header, weights, 0.25F), IsOk());
  EXPECT_THAT(run(header, weights, 0.25F), IsOk());
  const auto differs = Fails(StatusCode::kAlreadyExists, "PART_DIFFERS");
  EXPECT_THAT(run(header, {0, 1, 2, 0.75F}, 0.25F), differs);
  EXPECT_THAT(run(header, {1, 0, 2, 0.5F}, 0.25F), differs);
  EXPECT_THAT(run(header, weights, 0.5F), differs);
  server::HeadHeader other = header;
  other.softcap = 3;
  EXPECT_THAT(run(other, weights, 0.25F), differs);
  EXPECT_THAT(Run(Header(kRank0, 1)), differs);
  ASSERT_NO_FATAL_FAILURE(Apply(1, 1, 0));
}

TEST_F(HeadTermsTest, ClassWeightsOutOfOrderOrRangeAreNamed) {
  StartWithSessions();
  const float infinity = std::numeric_limits<float>::infinity();
  struct Bad {
    int64_t first_row;
    std::vector<float> weights;
    const char* reason;
    const char* message;
  };
  for (const Bad& bad :
       {Bad{1, {1}, "BAD_OFFSET", "first_row of the class weights is 1"},
        Bad{0, {1, 1, 1, 1, 1}, "BAD_COUNT", "5"},
        Bad{0, {1, 1, -1, 1}, "BAD_SCALAR", "class weight of row 2 is -1"},
        Bad{0, {1, infinity}, "BAD_SCALAR", "class weight of row 1 is inf"},
        Bad{0,
            {std::nanf("")},
            "BAD_SCALAR",
            "class weight of row 0 is nan"}}) {
    const auto head = Open(WithAllTerms(Header(kRank0, 1)));
    ASSERT_THAT(head, IsOk());
    const absl::Status status =
        (*head)->AppendClassWeights(bad.first_row, bad.weights);
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, bad.reason));
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
    EXPECT_THAT(Land(**head),  // The call is void.
                Fails(StatusCode::kInvalidArgument, bad.reason));
  }
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
}

TEST_F(HeadTermsTest, CoefficientsThatAreMissingOrNotFiniteAreRefused) {
  StartWithSessions();
  const float infinity = std::numeric_limits<float>::infinity();
  struct Bad {
    std::vector<float> target, smoothing;
    const char* reason;
    const char* message;
  };
  for (const Bad& bad :
       {Bad{{}, {1}, "BAD_SHAPE", "target_coefficients"},
        Bad{{1}, {}, "BAD_SHAPE", "smoothing_coefficients"},
        Bad{{infinity}, {1}, "NOT_FINITE", "target_coefficients of token 0"},
        Bad{{1}, {infinity}, "NOT_FINITE", "smoothing_coefficients of token"},
        Bad{{1}, {3e38F}, "NOT_FINITE", "the sum of the coefficients"}}) {
    const auto head = Open(WithAllTerms(Header(kRank0, 1)));
    ASSERT_THAT(head, IsOk());
    const std::vector<float> weights = {1, 1, 2, 1};
    ASSERT_THAT((*head)->AppendClassWeights(0, weights), IsOk());
    ASSERT_THAT(Land(**head), IsOk());
    ASSERT_THAT(StartStatistics(**head).Wait(), IsOk());
    const std::vector<float> max = {0}, sum = {4}, upstream = {1};
    const absl::Status status = (*head)->AppendMerged(
        {0, max, sum, upstream, bad.target, bad.smoothing});
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, bad.reason));
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
  const auto plain = Open(Header(kRank0, 1));
  ASSERT_THAT(Land(**plain), IsOk());
  ASSERT_THAT(StartStatistics(**plain).Wait(), IsOk());
  const std::vector<float> one = {1};
  EXPECT_THAT((*plain)->AppendMerged({0, one, one, one, one, one}),
              Fails(StatusCode::kInvalidArgument, "BAD_SHAPE"));
  ASSERT_NO_FATAL_FAILURE(Apply(1, 0, 0));
}

}  // namespace
}  // namespace rowhouse::testing
