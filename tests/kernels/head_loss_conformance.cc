// The terms of the head's loss beside plain cross entropy.

#include <cmath>
#include <limits>

#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/head_problem.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// 3 tokens, the second ignored, over 5 rows of 2 columns in two slices.
HeadProblem Small() {
  HeadProblem problem;
  problem.token_count = 3;
  problem.row_count = 5;
  problem.dim = 2;
  problem.hidden = {1.0F, -2.0F, 0.5F, 3.0F, -1.5F, 0.25F};
  problem.weights = {0.5F,  1.0F,  -1.0F, 0.75F,  2.0F,
                     -0.5F, 0.25F, 0.25F, -0.75F, -1.5F};
  problem.bias = {0.1F, -0.2F, 0.3F, 0.0F, -0.4F};
  problem.targets = {2, -1, 4};
  problem.upstream = {1.0F, 0.0F, 1.0F};
  problem.bounds = {0, 2, 5};
  problem.predict = true;
  return problem;
}

struct Golden {
  std::vector<float> loss, hidden_gradient, weight_gradient, bias_gradient;
};

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want,
                const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-6F) << what << " element " << i;
  }
}

// Losses, and derivatives by complex steps of the loss alone, were computed in
// fp64 from PyTorch's documented formula of cross_entropy plus l * lse^2, apart
// from this code.
void ExpectGolden(Backend& backend, HeadProblem problem, const Golden& want) {
  for (const int64_t block : {1, 3, 1000}) {
    problem.blocks = {block, block};
    const HeadResult got = RunHead(backend, problem);
    ExpectNear(got.loss, want.loss, "loss");
    ExpectNear(got.hidden_gradient, want.hidden_gradient, "hidden gradient");
    ExpectNear(got.main_grad, want.weight_gradient, "weight gradient");
    ExpectNear(got.bias_grad, want.bias_gradient, "bias gradient");
    EXPECT_THAT(got.predicted, ElementsAre(2, 0, 1));
  }
}

TEST_P(BackendTest, HeadSmoothesLabels) {
  HeadProblem problem = Small();
  problem.label_smoothing = 0.1;
  ExpectGolden(
      *backend_, problem,
      {{0.556843392F, 0.0F, 1.7077409F},
       {-0.381952325F, -0.203965196F, 0.0F, 0.0F, -0.00930575F, 1.62571725F},
       {-0.120483409F, 0.0436677144F, -0.896723411F, 0.182555983F,
        -0.117781807F, 0.268240664F, -0.117670321F, 0.0149707383F, 1.25265895F,
        -0.5094351F},
       {0.0588794124F, 0.567722806F, -0.147488216F, 0.0826659554F,
        -0.561779958F}});
}

TEST_P(BackendTest, HeadWeighsClasses) {
  HeadProblem problem = Small();
  problem.class_weights = {0.5F, 2.0F, 1.5F, 0.0F, 3.0F};
  problem.upstream = {1 / 4.5F, 0.0F, 1 / 4.5F};  // A mean, by 1.5 + 3.
  ExpectGolden(
      *backend_, problem,
      {{0.364265086F, 0.0F, 4.91622269F},
       {-0.187317442F, -0.0513217322F, 0.0F, 0.0F, 0.0571295F, 1.1838115F},
       {-0.0893670339F, 0.0105346655F, -0.605130381F, 0.0996668684F,
        -0.0799859873F, 0.145090008F, -0.0926240291F, 0.00166812198F,
        0.867107431F, -0.256959664F},
       {0.0635415137F, 0.404500431F, -0.0664569265F, 0.074266822F,
        -0.47585184F}});
}

TEST_P(BackendTest, HeadAddsTheSquareOfTheLogSumOfExponentials) {
  HeadProblem problem = Small();
  problem.z_loss = 0.05;
  ExpectGolden(
      *backend_, problem,
      {{0.87043036F, 0.0F, 1.83649541F},
       {-0.0524745527F, -0.385654825F, 0.0F, 0.0F, -0.0464189508F, 1.83055026F},
       {-0.155324437F, 0.0081740165F, -1.08674504F, 0.176296711F, 0.047695305F,
        -0.122153017F, -0.149559023F, -0.0310157979F, 1.3999064F,
        -0.690152071F},
       {0.119652706F, 0.728885293F, 0.0720247657F, 0.150562653F,
        -0.517966989F}});
}

TEST_P(BackendTest, HeadCapsLogitsSoftly) {
  HeadProblem problem = Small();
  problem.softcap = 2.0F;
  ExpectGolden(
      *backend_, problem,
      {{0.623226473F, 0.0F, 1.52932808F},
       {-0.233189262F, -0.186590082F, 0.0F, 0.0F, 0.33210983F, 1.50794746F},
       {-0.13299359F, -0.00690343198F, -0.485197391F, 0.0745630787F,
        -0.0718697971F, 0.128656545F, -0.100301922F, -0.101044217F, 1.30831937F,
        -0.527158319F},
       {0.115088784F, 0.329195067F, -0.0581579345F, 0.173923589F,
        -0.591208287F}});
}

TEST_P(BackendTest, HeadTakesAllTermsTogether) {
  HeadProblem problem = Small();
  problem.class_weights = {0.5F, 2.0F, 1.5F, 0.0F, 3.0F};
  problem.label_smoothing = 0.2;
  problem.z_loss = 0.01;
  problem.softcap = 3.0F;
  problem.upstream = {1 / 4.5F, 0.0F, 1 / 4.5F};
  problem.z_upstream = {0.5F, 0.0F, 0.5F};
  ExpectGolden(*backend_, problem,
               {{1.28328216F, 0.0F, 4.3629664F},
                {-0.0681602422F, -0.0749961022F, 0.0F, 0.0F, 0.0960617718F,
                 0.911825493F},
                {-0.0808757839F, 0.0118159678F, -0.404901032F, 0.0812142374F,
                 -0.0166634412F, 0.0377719491F, -0.08105524F, -0.015645364F,
                 0.697500463F, -0.218679498F},
                {0.055429307F, 0.257451538F, -0.0207044109F, 0.0805409819F,
                 -0.371882653F}});
}

HeadProblem SmallWithAllTerms() {
  HeadProblem problem = Small();
  problem.class_weights = {0.5F, 2.0F, 1.5F, 0.0F, 3.0F};
  problem.label_smoothing = 0.2;
  problem.z_loss = 0.01;
  problem.softcap = 3.0F;
  return problem;
}

TEST_P(BackendTest, HeadWithClassWeightsOfOneHasThePlainBits) {
  HeadProblem problem = Small();
  const HeadResult plain = RunHead(*backend_, problem);
  problem.class_weights.assign(5, 1.0F);
  ExpectSameBits(RunHead(*backend_, problem), plain);
}

TEST_P(BackendTest, HeadPredictsTheFirstRowOfTheLargestLogit) {
  HeadProblem problem = Small();
  problem.bias.clear();
  problem.token_count = 1;
  problem.hidden = {1.0F, 0.0F};
  problem.targets = {0};
  problem.upstream = {1.0F};
  problem.weights = {1, 0, 3, 0, 2, 0, 3, 0, 3, 0};
  for (const std::vector<int64_t>& bounds : std::vector<std::vector<int64_t>>{
           {0, 5}, {0, 1, 5}, {0, 2, 5}, {0, 0, 3, 5}, {0, 1, 2, 3, 4, 5}}) {
    for (const int64_t block : {1, 2, 1000}) {
      problem.bounds = bounds;
      problem.blocks = {block, block};
      EXPECT_THAT(RunHead(*backend_, problem).predicted, ElementsAre(1));
    }
  }
}

TEST_P(BackendTest, HeadPredictsNothingOfLogitsThatAreNoNumbers) {
  HeadProblem problem = Small();
  problem.hidden[0] = std::nanf("");
  EXPECT_THAT(RunHead(*backend_, problem).predicted, ElementsAre(-1, 0, 1));
}

TEST_P(BackendTest, HeadSmoothesPastAbsentRowsOfClassWeightZero) {
  // Rows of bias -inf are absent; that of weight 0 adds nothing to the sum.
  HeadProblem problem = Small();
  problem.bias[3] = -kInfinity;
  problem.label_smoothing = 0.1;
  problem.class_weights = {1, 1, 1, 0, 1};
  const HeadResult result = RunHead(*backend_, problem);
  for (const float loss : result.loss) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_EQ(result.bias_grad[3], 0.0F);
}

TEST_P(BackendTest, HeadLeavesIgnoredTokensOutOfAllTerms) {
  HeadProblem problem = SmallWithAllTerms();
  const HeadResult want = RunHead(*backend_, problem);
  for (const float poison : {std::nanf(""), kInfinity}) {
    for (const bool keep : {false, true}) {
      problem.hidden[2] = poison;
      problem.keep = keep;
      const HeadResult got = RunHead(*backend_, problem);
      EXPECT_EQ(BitsOf(got.hidden_gradient), BitsOf(want.hidden_gradient));
      EXPECT_EQ(BitsOf(got.main_grad), BitsOf(want.main_grad));
      EXPECT_EQ(BitsOf(got.bias_grad), BitsOf(want.bias_grad));
    }
  }
}

TEST_P(BackendTest, HeadWithAllTermsAndAllTokensIgnoredChangesNoBit) {
  HeadProblem problem = SmallWithAllTerms();
  problem.targets.assign(3, -1);
  problem.upstream.assign(3, 0.0F);
  problem.main_grad.assign(10, -0.0F);
  problem.bias_grad.assign(5, -0.0F);
  const HeadResult result = RunHead(*backend_, problem);
  EXPECT_THAT(result.loss, Each(0.0F));
  EXPECT_EQ(BitsOf(result.hidden_gradient), std::vector<uint32_t>(6, 0));
  EXPECT_EQ(BitsOf(result.main_grad), BitsOf(problem.main_grad));
  EXPECT_EQ(BitsOf(result.bias_grad), BitsOf(problem.bias_grad));
}

TEST_P(BackendTest, HeadWithAllTermsTakesNoTokensAndEmptySlices) {
  HeadProblem problem = SmallWithAllTerms();
  const HeadResult whole = RunHead(*backend_, problem);
  problem.bounds = {0, 0, 2, 2, 5, 5};
  ExpectSameBits(RunHead(*backend_, problem), whole);

  problem.token_count = 0;
  problem.hidden.clear();
  problem.targets.clear();
  problem.upstream.clear();
  const HeadResult none = RunHead(*backend_, problem);
  EXPECT_TRUE(none.loss.empty());
  EXPECT_TRUE(none.predicted.empty());
  EXPECT_THAT(none.main_grad, Each(0.0F));
}

TEST_P(BackendTest, HeadTokensOfNoProbabilityStillTakePart) {
  // Label and smoothing alone, as a caller's own loss may have them.
  const auto hidden = Array<float>({1.0F});
  const auto weights = Array<float>({0.0F, 0.0F});
  const auto targets = Array<int64_t>({0});
  const auto merged = Array<float>({0.0F, 2.0F, 0.0F, 1.0F, 0.25F});
  const float* const values = merged.data();
  const auto main_grad = Array<float>({0.0F, 0.0F});
  ASSERT_THAT(backend_->HeadWeightGradient(
                  {weights.data(), DType::kFp32, nullptr, 2, 1},
                  {hidden.data(), DType::kFp32, 1, targets.data()},
                  {values, values + 1, values + 2, values + 3, values + 4}, {},
                  {}, {main_grad.data(), DType::kFp32, 2, 1, 1}, nullptr),
              IsOk());
  EXPECT_THAT(main_grad.Download(), ElementsAre(-1.25F, -0.25F));
}

}  // namespace
}  // namespace rowhouse::kernels
