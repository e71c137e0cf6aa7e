// What heads must not get wrong, where a backend may form products of tiles:
// bf16 in rows of a multiple of 8, without bias and softcap. Columns after the
// first are zeros, so that the first has the values of one column.

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/head_problem.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kDim = 8;

std::vector<float> Wide(size_t rows, float first) {
  std::vector<float> wide(rows * kDim, 0.0F);
  for (size_t i = 0; i < rows; ++i) wide[i * kDim] = first;
  return wide;
}

// Targets 0, upstream 1.
HeadProblem Constant(size_t tokens, float hidden, size_t rows, float weight) {
  HeadProblem problem;
  problem.token_count = static_cast<int64_t>(tokens);
  problem.row_count = static_cast<int64_t>(rows);
  problem.dim = kDim;
  problem.hidden_dtype = DType::kBf16;
  problem.weight_dtype = DType::kBf16;
  problem.hidden = Wide(tokens, hidden);
  problem.weights = Wide(rows, weight);
  problem.targets.assign(tokens, 0);
  problem.upstream.assign(tokens, 1.0F);
  problem.bounds = {0, problem.row_count};
  problem.blocks = {512, 400};
  return problem;
}

std::vector<float> FirstColumn(const std::vector<float>& wide) {
  std::vector<float> first;
  for (size_t i = 0; i < wide.size(); i += kDim) first.push_back(wide[i]);
  return first;
}

// However it is kept.
template <typename Expect>
void ForEachWay(Backend& backend, HeadProblem problem, Expect expect) {
  for (const bool keep_logits : {false, true}) {
    for (const bool keep : {false, true}) {
      for (const bool at_once : {false, true}) {
        problem.keep_logits = keep_logits;
        problem.keep = keep && !at_once;
        problem.at_once = at_once;
        expect(RunHead(backend, problem));
      }
    }
  }
}

// See `HeadRoundsTheLogitGradientOnceAfterTheTarget`.
TEST_P(BackendTest, HeadOfTilesRoundsTheLogitGradientOnceAfterTheTarget) {
  ForEachWay(
      *backend_, Constant(1, 1.0F, 3, 0.0F), [](const HeadResult& result) {
        EXPECT_THAT(FirstColumn(result.main_grad),
                    ElementsAre(-0.66796875F, 0.333984375F, 0.333984375F));
      });
}

TEST_P(BackendTest, HeadOfTilesLosesNoneOfManySmallBf16Parts) {
  HeadProblem problem = Constant(1, 0.0F, 1024, 1.0F);
  problem.weights[0] = 0.0F;
  ForEachWay(*backend_, problem, [](const HeadResult& result) {
    EXPECT_EQ(result.hidden_gradient[0], 1023.0F / 1024);
  });
  problem = Constant(1023, 1.0F, 2, 0.0F);
  problem.upstream.assign(1023, 2.0F / 1024);
  ForEachWay(*backend_, problem, [](const HeadResult& result) {
    EXPECT_THAT(FirstColumn(result.main_grad),
                ElementsAre(-1023.0F / 1024, 1023.0F / 1024));
  });
}

TEST_P(BackendTest, HeadOfTilesLeavesIgnoredTokensOutWhateverTheyHold) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float poison : {std::nanf(""), infinity, -infinity}) {
    HeadProblem problem = Constant(3, 1.0F, 2, 0.0F);
    problem.hidden[kDim] = poison;
    problem.targets[1] = -1;
    problem.upstream[1] = 0.0F;
    ForEachWay(*backend_, problem, [](const HeadResult& result) {
      EXPECT_EQ(BitsOf(result.hidden_gradient),
                (std::vector<uint32_t>(3 * kDim, 0)));
      EXPECT_THAT(FirstColumn(result.main_grad), ElementsAre(-1.0F, 1.0F));
    });
  }
}

// Their hidden gradient is +0, where that of others is not a number.
TEST_P(BackendTest, HeadClearsIgnoredTokensBesideWeightsThatAreNotFinite) {
  for (const float poison :
       {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    HeadProblem problem = Constant(3, 1.0F, 200, 0.5F);
    problem.weights[kDim + 1] = poison;
    problem.targets[1] = -1;
    problem.upstream[1] = 0.0F;
    ForEachWay(*backend_, problem, [](const HeadResult& result) {
      for (size_t j = 0; j < kDim; ++j) {
        EXPECT_EQ(std::bit_cast<uint32_t>(result.hidden_gradient[kDim + j]),
                  0U);
      }
      EXPECT_TRUE(std::isnan(result.hidden_gradient[1]));
      EXPECT_TRUE(std::isnan(result.hidden_gradient[2 * kDim + 1]));
    });
  }
}

TEST_P(BackendTest, HeadOfTilesWithAllTokensIgnoredChangesNoBit) {
  HeadProblem problem = Constant(3, std::nanf(""), 2, 1.0F);
  problem.targets.assign(3, -1);
  problem.upstream.assign(3, 0.0F);
  problem.main_grad = Wide(2, -0.0F);
  problem.main_grad[kDim] = std::bit_cast<float>(0x7fc12345U);
  ForEachWay(*backend_, problem, [&](const HeadResult& result) {
    EXPECT_THAT(result.loss, Each(0.0F));
    EXPECT_EQ(BitsOf(result.hidden_gradient),
              (std::vector<uint32_t>(3 * kDim, 0)));
    EXPECT_EQ(BitsOf(result.main_grad), BitsOf(problem.main_grad));
  });
}

TEST_P(BackendTest, HeadOfTilesScalesExactlyAndRepeatsItsBits) {
  HeadProblem problem = Constant(300, 1.0F, 700, 0.0F);
  for (size_t i = 0; i < problem.weights.size(); ++i) {
    problem.weights[i] = static_cast<float>(i % 13) / 8 - 0.75F;
  }
  for (size_t i = 0; i < problem.hidden.size(); ++i) {
    problem.hidden[i] = static_cast<float>(i % 11) / 4 - 1.25F;
  }
  for (size_t t = 0; t < problem.targets.size(); ++t) {
    problem.targets[t] = static_cast<int64_t>(t * 37 % 700);
  }
  const HeadResult once = RunHead(*backend_, problem);
  ForEachWay(*backend_, problem,
             [&](const HeadResult& again) { ExpectSameBits(again, once); });
  for (float& g : problem.upstream) g *= 0x1p10F;
  HeadResult scaled = RunHead(*backend_, problem);
  for (float& x : scaled.hidden_gradient) x *= 0x1p-10F;
  for (float& x : scaled.main_grad) x *= 0x1p-10F;
  EXPECT_EQ(scaled.hidden_gradient, once.hidden_gradient);
  EXPECT_EQ(scaled.main_grad, once.main_grad);
}

}  // namespace
}  // namespace rowhouse::kernels
