#include <cmath>
#include <limits>

#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/head_problem.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const std::vector<HeadBlocks> kSomeBlocks = {
    {1024, 2048}, {1, 1}, {3, 2}, {1, 1000}, {1000, 1}};

// `tokens` hidden rows of one column that all hold `hidden`, and `rows` weights
// that all hold `weight`; targets 0, upstream 1.
HeadProblem Constant(DType dtype, size_t tokens, float hidden, size_t rows,
                     float weight) {
  HeadProblem problem;
  problem.token_count = static_cast<int64_t>(tokens);
  problem.row_count = static_cast<int64_t>(rows);
  problem.dim = 1;
  problem.hidden_dtype = dtype;
  problem.weight_dtype = dtype;
  problem.hidden.assign(tokens, hidden);
  problem.weights.assign(rows, weight);
  problem.targets.assign(tokens, 0);
  problem.upstream.assign(tokens, 1.0F);
  problem.bounds = {0, problem.row_count};
  return problem;
}

TEST_P(BackendTest, HeadOfEqualLogitsIsTheUniformDistribution) {
  HeadProblem problem = Constant(DType::kFp32, 1, 2.0F, 4, 0.0F);
  problem.weights = {0, 0, 0, 0};
  problem.bias = {0, 0, 0, 0};
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.loss, ElementsAre(std::log(4.0F)));
  EXPECT_THAT(result.hidden_gradient, ElementsAre(0.0F));
  EXPECT_THAT(result.bias_grad, ElementsAre(-0.75F, 0.25F, 0.25F, 0.25F));
  EXPECT_THAT(result.main_grad, ElementsAre(-1.5F, 0.5F, 0.5F, 0.5F));
}

TEST_P(BackendTest, HeadStatisticsNameMaximumSumAndTargetLogit) {
  HeadProblem problem = Constant(DType::kFp32, 1, 1.0F, 3, 0.0F);
  problem.weights = {-1.0F, 2.0F, 2.0F};
  problem.targets = {1};
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.max_logits, ElementsAre(2.0F));
  EXPECT_NEAR(result.exp_sums[0], 2.0F + std::exp(-3.0F), 1e-6F);
  EXPECT_NEAR(result.loss[0], std::log(result.exp_sums[0]), 1e-7F);
}

TEST_P(BackendTest, HeadSendsTargetsAtSliceBordersToTheirOwnSlice) {
  // Hidden rows are those of the identity: dW[v][t] = 1/4 - (v == t).
  HeadProblem problem = Constant(DType::kFp32, 4, 0.0F, 4, 0.0F);
  problem.dim = 4;
  problem.hidden = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  problem.weights.assign(16, 0.0F);
  problem.targets = {0, 1, 2, 3};
  for (const std::vector<int64_t>& bounds : std::vector<std::vector<int64_t>>{
           {0, 4}, {0, 2, 4}, {0, 1, 4}, {0, 3, 4}, {0, 1, 2, 3, 4}}) {
    problem.bounds = bounds;
    const HeadResult result = RunHead(*backend_, problem);
    EXPECT_THAT(result.loss, Each(std::log(4.0F)));
    EXPECT_THAT(result.main_grad, ElementsAre(-0.75F, 0.25F, 0.25F, 0.25F,  //
                                              0.25F, -0.75F, 0.25F, 0.25F,  //
                                              0.25F, 0.25F, -0.75F, 0.25F,  //
                                              0.25F, 0.25F, 0.25F, -0.75F));
  }
}

TEST_P(BackendTest, HeadAddsTheBiasInFp32) {
  // 256 * 256 overflows fp16; with the bias the logits are 32.
  HeadProblem problem = Constant(DType::kFp16, 1, 256.0F, 2, 256.0F);
  problem.bias = {-65504.0F, -65504.0F};
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.max_logits, ElementsAre(32.0F));
  EXPECT_THAT(result.loss, ElementsAre(std::log(2.0F)));
}

TEST_P(BackendTest, HeadSumsPartsOfSlicesThatFp16CannotHold) {
  // -0.5 * 8 * 65504 and its opposite.
  HeadProblem problem = Constant(DType::kFp16, 1, 0.0F, 2, 65504.0F);
  problem.upstream = {8.0F};
  problem.bounds = {0, 1, 2};
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.hidden_gradient, ElementsAre(0.0F));

  problem.weights[1] = 0.0F;
  EXPECT_THAT(RunHead(*backend_, problem).hidden_gradient,
              ElementsAre(-262016.0F));
}

TEST_P(BackendTest, HeadSurvivesALossScaleOf65536InFp16) {
  for (const DType main : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    HeadProblem problem = Constant(DType::kFp16, 4, 1.0F, 2, 0.0F);
    problem.upstream.assign(4, 65536.0F / 4);
    problem.main_grad_dtype = main;
    EXPECT_THAT(RunHead(*backend_, problem).main_grad,
                ElementsAre(-32768.0F, 32768.0F));
  }
}

TEST_P(BackendTest, HeadHiddenGradientLosesNoneOfManySmallBf16Parts) {
  // 1,023 rows of weight 1 share 1/1024 each; the target's weight is 0.
  HeadProblem problem = Constant(DType::kBf16, 1, 0.0F, 1024, 1.0F);
  problem.weights[0] = 0.0F;
  for (const HeadBlocks& blocks : kSomeBlocks) {
    problem.blocks = blocks;
    const HeadResult result = RunHead(*backend_, problem);
    EXPECT_THAT(result.hidden_gradient, ElementsAre(1023.0F / 1024));
    EXPECT_EQ(Bf16ToFloat(FloatToBf16(result.hidden_gradient[0])), 1.0F);
  }
}

TEST_P(BackendTest, HeadWeightGradientLosesNoneOfManySmallBf16Parts) {
  HeadProblem problem = Constant(DType::kBf16, 1023, 1.0F, 2, 0.0F);
  problem.upstream.assign(1023, 2.0F / 1024);
  problem.bias = {0.0F, 0.0F};
  for (const HeadBlocks& blocks : kSomeBlocks) {
    problem.blocks = blocks;
    problem.main_grad_dtype = DType::kFp32;
    const HeadResult exact = RunHead(*backend_, problem);
    EXPECT_THAT(exact.main_grad, ElementsAre(-1023.0F / 1024, 1023.0F / 1024));
    EXPECT_THAT(exact.bias_grad, ElementsAre(-1023.0F / 1024, 1023.0F / 1024));
    problem.main_grad_dtype = DType::kBf16;  // One rounding, of the whole sum.
    EXPECT_THAT(RunHead(*backend_, problem).main_grad,
                ElementsAre(-1.0F, 1.0F));
  }
}

TEST_P(BackendTest, HeadRoundsTheLogitGradientOnceAfterTheTarget) {
  // p is 1/3 in bf16: 0.333984375; at the target fl32(1/3) - 1 is rounded:
  // -0.66796875. Rounded before the subtraction it would be -0.666015625.
  const HeadProblem problem = Constant(DType::kBf16, 1, 1.0F, 3, 0.0F);
  EXPECT_THAT(RunHead(*backend_, problem).main_grad,
              ElementsAre(-0.66796875F, 0.333984375F, 0.333984375F));
}

TEST_P(BackendTest, HeadBiasGradientSumsTheUnroundedLogitGradient) {
  HeadProblem problem = Constant(DType::kBf16, 2, 1.0F, 3, 0.0F);
  problem.bias = {0, 0, 0};
  for (const bool keep : {false, true}) {
    problem.keep = keep;
    const float third = 1.0F / 3;
    EXPECT_THAT(RunHead(*backend_, problem).bias_grad,
                ElementsAre(2 * (third - 1), 2 * third, 2 * third));
  }
}

TEST_P(BackendTest, HeadOfMixedTypesComputesInFp32) {
  HeadProblem problem = Constant(DType::kBf16, 1, 1.0F, 3, 0.0F);
  problem.weight_dtype = DType::kFp16;
  const float third = 1.0F / 3;
  EXPECT_THAT(RunHead(*backend_, problem).main_grad,
              ElementsAre(third - 1, third, third));
}

TEST_P(BackendTest, HeadAddsASecondMicroBatch) {
  for (const DType main : {DType::kFp32, DType::kBf16}) {
    HeadProblem problem = Constant(DType::kFp32, 2, 1.0F, 2, 0.0F);
    problem.bias = {0, 0};
    problem.main_grad_dtype = main;
    const HeadResult first = RunHead(*backend_, problem);
    problem.main_grad = first.main_grad;
    problem.bias_grad = first.bias_grad;
    const HeadResult second = RunHead(*backend_, problem);
    EXPECT_THAT(first.main_grad, ElementsAre(-1.0F, 1.0F));
    EXPECT_THAT(second.main_grad, ElementsAre(-2.0F, 2.0F));
    EXPECT_THAT(second.bias_grad, ElementsAre(-2.0F, 2.0F));
  }
}

TEST_P(BackendTest, HeadWithAllTokensIgnoredChangesNoBit) {
  const float payload = std::bit_cast<float>(0x7fc12345U);
  HeadProblem problem = Constant(DType::kFp32, 3, payload, 2, 1.0F);
  problem.targets.assign(3, -1);
  problem.upstream.assign(3, 0.0F);
  problem.bias = {0, 0};
  problem.main_grad = {-0.0F, payload};
  problem.bias_grad = {-0.0F, 1.0F};
  for (const bool keep : {false, true}) {
    problem.keep = keep;
    const HeadResult result = RunHead(*backend_, problem);
    EXPECT_THAT(result.loss, Each(0.0F));
    EXPECT_EQ(BitsOf(result.hidden_gradient), (std::vector<uint32_t>(3, 0)));
    EXPECT_EQ(BitsOf(result.main_grad), BitsOf(problem.main_grad));
    EXPECT_EQ(BitsOf(result.bias_grad), BitsOf(problem.bias_grad));
  }
}

TEST_P(BackendTest, HeadLeavesIgnoredTokensOutWhateverTheyHold) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float poison : {std::nanf(""), infinity, -infinity}) {
    for (const bool keep : {false, true}) {
      HeadProblem problem = Constant(DType::kBf16, 3, 1.0F, 2, 0.0F);
      problem.hidden[1] = poison;
      problem.targets[1] = -1;
      problem.upstream[1] = 0.0F;
      problem.keep = keep;
      const HeadResult result = RunHead(*backend_, problem);
      EXPECT_EQ(BitsOf(result.hidden_gradient), (std::vector<uint32_t>(3, 0)));
      EXPECT_THAT(result.main_grad, ElementsAre(-1.0F, 1.0F));
    }
  }
}

TEST_P(BackendTest, HeadTokensWithNanSpoilTheirOwnLossAndRowOnly) {
  HeadProblem problem = Constant(DType::kFp32, 3, 1.0F, 2, 1.0F);
  problem.hidden[1] = std::nanf("");
  for (const HeadBlocks& blocks : kSomeBlocks) {
    problem.blocks = blocks;
    const HeadResult result = RunHead(*backend_, problem);
    EXPECT_EQ(result.loss[0], std::log(2.0F));
    EXPECT_TRUE(std::isnan(result.loss[1]));
    EXPECT_EQ(result.loss[2], std::log(2.0F));
    EXPECT_EQ(result.hidden_gradient[0], 0.0F);
    EXPECT_TRUE(std::isnan(result.hidden_gradient[1]));
    EXPECT_EQ(result.hidden_gradient[2], 0.0F);
  }
}

TEST_P(BackendTest, HeadTakesRowsWhoseBiasIsMinusInfinityAsAbsent) {
  const float infinity = std::numeric_limits<float>::infinity();
  HeadProblem problem = Constant(DType::kFp32, 1, 1.0F, 4, 1.0F);
  problem.bias = {0, 0, -infinity, -infinity};
  for (const std::vector<int64_t>& bounds :
       std::vector<std::vector<int64_t>>{{0, 4}, {0, 2, 4}}) {
    for (const HeadBlocks& blocks : kSomeBlocks) {
      problem.bounds = bounds;
      problem.blocks = blocks;
      const HeadResult result = RunHead(*backend_, problem);
      EXPECT_THAT(result.loss, ElementsAre(std::log(2.0F)));
      EXPECT_THAT(result.bias_grad, ElementsAre(-0.5F, 0.5F, 0.0F, 0.0F));
    }
  }
}

TEST_P(BackendTest, HeadWithoutTokensDoesNothing) {
  HeadProblem problem = Constant(DType::kBf16, 0, 0.0F, 3, 1.0F);
  problem.bias = {1, 2, 3};
  problem.main_grad = {1, 2, 3};
  for (const bool keep : {false, true}) {
    problem.keep = keep;
    const HeadResult result = RunHead(*backend_, problem);
    EXPECT_TRUE(result.loss.empty());
    EXPECT_THAT(result.main_grad, ElementsAre(1.0F, 2.0F, 3.0F));
    EXPECT_THAT(result.bias_grad, Each(0.0F));
  }
}

TEST_P(BackendTest, HeadWithoutRowsGivesNoGradient) {
  HeadProblem problem = Constant(DType::kFp32, 2, 1.0F, 0, 0.0F);
  problem.targets.assign(2, -1);
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.max_logits, Each(-std::numeric_limits<float>::infinity()));
  EXPECT_THAT(result.exp_sums, Each(0.0F));
  EXPECT_THAT(result.hidden_gradient, Each(0.0F));
}

TEST_P(BackendTest, HeadWithoutColumnsHasOnlyItsBias) {
  HeadProblem problem = Constant(DType::kFp32, 1, 0.0F, 2, 0.0F);
  problem.dim = 0;
  problem.hidden.clear();
  problem.weights.clear();
  problem.bias = {0, 0};
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.loss, ElementsAre(std::log(2.0F)));
  EXPECT_THAT(result.bias_grad, ElementsAre(-0.5F, 0.5F));
}

TEST_P(BackendTest, HeadWeightGradientHonoursTheRowStrideOfMainGrad) {
  const auto hidden = Array<float>({1, 2});
  const auto weights = Array<float>({0, 0, 0, 0});
  const auto targets = Array<int64_t>({0});
  const auto merged = Array<float>({0, 2, 1});  // Maximum, sum, upstream.
  const HeadSlice slice = {weights.data(), DType::kFp32, nullptr, 2, 2};
  const HeadInputs inputs = {hidden.data(), DType::kFp32, 1, targets.data()};
  for (const DType main : {DType::kFp32, DType::kBf16}) {
    const auto main_grad = Array(Encode(main, {1, 1, 9, 1, 1, 9}));
    ASSERT_THAT(backend_->HeadWeightGradient(
                    slice, inputs,
                    {merged.data(), merged.data() + 1, merged.data() + 2,
                     merged.data() + 2},
                    {}, {}, {main_grad.data(), main, 2, 2, 3}, nullptr),
                IsOk());
    EXPECT_THAT(Decode(main, main_grad.Download()),
                ElementsAre(0.5F, 0.0F, 9.0F, 1.5F, 2.0F, 9.0F));
  }
}

}  // namespace
}  // namespace rowhouse::kernels
