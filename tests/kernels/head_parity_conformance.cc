#include <cmath>

#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/head_problem.h"
#include "tests/kernels/host_table.h"
#include "tests/reference/linear_cross_entropy.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

constexpr double kUnit = 0x1p-24;  // Half a last place of fp32.

// What one rounding to `dtype` may lose, relative and, below its normal
// numbers, absolute. With bf16, what a backend may take e^(logit - largest)
// from has lost 2^-10 * ln 2 (`Backend::HeadHiddenGradient`).
double RelativeRounding(DType dtype) {
  constexpr double kLn2 = 0.6931471805599453;
  switch (dtype) {
    case DType::kBf16:
      return 0x1p-8 + 0x1p-10 * kLn2;
    case DType::kFp16:
      return 0x1p-11;
    case DType::kFp32:
      return kUnit;
  }
  return 0;
}
double AbsoluteRounding(DType dtype) {
  return dtype == DType::kFp16 ? 0x1p-25 : 0x1p-134;
}

// An fp32 sum of `count` terms errs by less than this times the sum of their
// absolute values: roundings are independent, so they grow as the root, and 4
// leaves room for their tails.
double SumError(int64_t count) {
  return 4 * std::sqrt(static_cast<double>(count + 1)) * kUnit;
}

std::vector<float> Normal(Random& random, DType dtype, float scale,
                          int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = scale * random.Normal();
  return Representable(dtype, values);
}

struct Size {
  int64_t token_count;
  int64_t row_count;
  int64_t dim;
};

HeadProblem RandomProblem(Random& random, const Size& size, DType hidden,
                          DType weight, DType main, bool has_bias) {
  HeadProblem problem;
  problem.token_count = size.token_count;
  problem.row_count = size.row_count;
  problem.dim = size.dim;
  problem.hidden_dtype = hidden;
  problem.weight_dtype = weight;
  problem.main_grad_dtype = main;
  problem.hidden =
      Normal(random, hidden, 1.0F, problem.token_count * problem.dim);
  problem.weights =
      Normal(random, weight, 0.3F, problem.row_count * problem.dim);
  if (has_bias) {
    problem.bias = Normal(random, DType::kFp32, 1.0F, problem.row_count);
    problem.bias_grad = Normal(random, DType::kFp32, 0.1F, problem.row_count);
  }
  problem.main_grad =
      Normal(random, main, 0.1F, problem.row_count * problem.dim);
  for (int64_t t = 0; t < problem.token_count; ++t) {
    const bool ignored = random.Chance(0.2);
    problem.targets.push_back(
        ignored ? -1 : random.Integer(0, problem.row_count - 1));
    problem.upstream.push_back(ignored ? 0.0F : random.Uniform(-1.5F, 1.5F));
  }
  // Up to four slices, some of them perhaps empty.
  problem.bounds = {0, problem.row_count};
  for (int64_t cuts = random.Integer(0, 3); cuts > 0; --cuts) {
    problem.bounds.push_back(random.Integer(0, problem.row_count));
  }
  std::sort(problem.bounds.begin(), problem.bounds.end());
  problem.blocks = {random.Integer(1, 70), random.Integer(1, 100)};
  problem.keep = random.Chance(0.5);
  if (random.Chance(0.5)) problem.kept_share = random.Uniform(0, 1);
  return problem;
}

HeadProblem RandomProblem(Random& random, DType hidden, DType weight,
                          DType main, bool has_bias) {
  const int64_t token_count = random.Integer(1, 60);
  const int64_t row_count = random.Integer(1, 90);
  const int64_t dim = random.Integer(1, 70);
  return RandomProblem(random, {token_count, row_count, dim}, hidden, weight,
                       main, has_bias);
}

// Relative error of a token's softmax: the logits' own, twice, for the
// normalizer has it too; the sum of exponentials; and the roundings of the
// exponential's argument (below 104) and of the few operations around it.
// A softcap adds its own roundings, of logits up to the cap, and the error of
// its slope, at most twice that of the tanh.
double SoftmaxError(const HeadProblem& problem, double logit_terms) {
  const double logit_error = SumError(problem.dim) * logit_terms;
  const double error =
      2 * logit_error + SumError(problem.row_count) + 128 * kUnit;
  if (problem.softcap == 0) return error;
  return error + 2 * logit_error / problem.softcap +
         16 * kUnit * (problem.softcap + 1);
}

void ExpectWithin(float got, double want, double bound, const char* what,
                  size_t i) {
  EXPECT_LE(std::abs(static_cast<double>(got) - want), bound)
      << what << " element " << i << ": " << got << ", not " << want;
}

void ExpectLossAndHiddenGradient(const HeadProblem& problem,
                                 const HeadResult& got,
                                 const reference::CrossEntropyResult& want) {
  const DType compute = ComputeType(problem.hidden_dtype, problem.weight_dtype);
  for (size_t t = 0; t < got.loss.size(); ++t) {
    const double error = SoftmaxError(problem, want.largest_logit_terms[t]);
    ExpectWithin(
        got.loss[t], want.loss[t],
        error * want.loss_terms[t] +
            4 * kUnit * (std::abs(want.loss[t]) + want.loss_terms[t] + 1),
        "loss", t);
    for (size_t j = 0; j < static_cast<size_t>(problem.dim); ++j) {
      const size_t i = t * static_cast<size_t>(problem.dim) + j;
      ExpectWithin(
          got.hidden_gradient[i], want.hidden_gradient[i],
          (error + RelativeRounding(compute) + SumError(problem.row_count)) *
                  want.hidden_gradient_terms[i] +
              AbsoluteRounding(compute) * want.hidden_gradient_factors[i],
          "hidden gradient", i);
    }
  }
}

void ExpectWeightGradient(const HeadProblem& problem, const HeadResult& got,
                          const reference::CrossEntropyResult& want) {
  const DType compute = ComputeType(problem.hidden_dtype, problem.weight_dtype);
  const double error =
      SoftmaxError(problem, *std::max_element(want.largest_logit_terms.begin(),
                                              want.largest_logit_terms.end())) +
      SumError(problem.token_count);
  for (size_t i = 0; i < got.main_grad.size(); ++i) {
    const double before = problem.main_grad[i];
    const double after = before + want.weight_gradient[i];
    ExpectWithin(
        got.main_grad[i], after,
        (error + RelativeRounding(compute)) * want.weight_gradient_terms[i] +
            AbsoluteRounding(compute) * want.weight_gradient_factors[i] +
            SumError(problem.token_count) * std::abs(before) +
            RelativeRounding(problem.main_grad_dtype) * 1.01 * std::abs(after) +
            AbsoluteRounding(problem.main_grad_dtype),
        "main_grad", i);
  }
  for (size_t v = 0; v < got.bias_grad.size(); ++v) {
    const double before = problem.bias_grad[v];
    ExpectWithin(got.bias_grad[v], before + want.bias_gradient[v],
                 error * (want.bias_gradient_terms[v] + std::abs(before)),
                 "bias_grad", v);
  }
}

reference::CrossEntropyResult Exact(const HeadProblem& problem) {
  return reference::LinearCrossEntropy(
      {problem.token_count, problem.row_count, problem.dim, problem.hidden,
       problem.weights, problem.bias, problem.targets, problem.upstream,
       problem.class_weights, problem.softcap, problem.label_smoothing,
       problem.z_loss, problem.z_upstream});
}

TEST_P(BackendTest, HeadEqualsAnFp64OracleWithinItsRoundings) {
  Random random(71);
  SCOPED_TRACE(random.Trace());
  const std::pair<DType, DType> types[] = {{DType::kFp32, DType::kFp32},
                                           {DType::kBf16, DType::kBf16},
                                           {DType::kFp16, DType::kFp16},
                                           {DType::kBf16, DType::kFp32},
                                           {DType::kFp16, DType::kBf16}};
  for (const auto& [hidden, weight] : types) {
    for (const DType main : {DType::kFp32, DType::kBf16, DType::kFp16}) {
      for (const bool has_bias : {false, true}) {
        const HeadProblem problem =
            RandomProblem(random, hidden, weight, main, has_bias);
        const HeadResult got = RunHead(*backend_, problem);
        const reference::CrossEntropyResult want = Exact(problem);
        ExpectLossAndHiddenGradient(problem, got, want);
        ExpectWeightGradient(problem, got, want);
      }
    }
  }
}

// Up to eight slices of any sizes.
std::vector<int64_t> RandomBounds(Random& random, int64_t row_count) {
  std::vector<int64_t> bounds = {0, row_count};
  for (int64_t cuts = random.Integer(0, 7); cuts > 0; --cuts) {
    bounds.push_back(random.Integer(0, row_count));
  }
  std::sort(bounds.begin(), bounds.end());
  return bounds;
}

// Adds the terms whose bits are set.
void AddTerms(Random& random, int chosen, HeadProblem& problem) {
  if ((chosen & 1) != 0) problem.label_smoothing = random.Uniform(0.01F, 0.9F);
  if ((chosen & 2) != 0) problem.z_loss = random.Uniform(1e-4F, 0.1F);
  if ((chosen & 4) != 0) problem.softcap = random.Uniform(2.0F, 40.0F);
  if ((chosen & 8) == 0) return;
  for (int64_t v = 0; v < problem.row_count; ++v) {
    problem.class_weights.push_back(
        random.Chance(0.2) ? 0.0F : random.Uniform(0.0F, 3.0F));
  }
  for (const float g : problem.upstream) {  // As a mean has it.
    problem.z_upstream.push_back(g == 0 ? 0.0F : random.Uniform(0.1F, 1.0F));
  }
}

// A predicted row's exact logit is the largest, but for roundings.
void ExpectPredicted(const HeadProblem& problem, const HeadResult& got,
                     const reference::CrossEntropyResult& want) {
  ASSERT_EQ(std::ssize(got.predicted), problem.token_count);
  for (size_t t = 0; t < got.predicted.size(); ++t) {
    const auto row =
        want.logits.begin() + static_cast<int64_t>(t) * problem.row_count;
    ASSERT_GE(got.predicted[t], 0);
    ASSERT_LT(got.predicted[t], problem.row_count);
    EXPECT_GE(row[got.predicted[t]],
              *std::max_element(row, row + problem.row_count) -
                  SoftmaxError(problem, want.largest_logit_terms[t]))
        << "token " << t;
  }
}

TEST_P(BackendTest, HeadWithAllItsTermsEqualsAnFp64Oracle) {
  Random random(78);
  SCOPED_TRACE(random.Trace());
  const std::pair<DType, DType> types[] = {{DType::kFp32, DType::kFp32},
                                           {DType::kBf16, DType::kBf16},
                                           {DType::kFp16, DType::kFp16},
                                           {DType::kBf16, DType::kFp32}};
  for (const auto& [hidden, weight] : types) {
    for (int chosen = 1; chosen < 16; ++chosen) {
      for (const bool has_bias : {false, true}) {
        SCOPED_TRACE(chosen);
        HeadProblem problem =
            RandomProblem(random, hidden, weight, DType::kFp32, has_bias);
        problem.bounds = RandomBounds(random, problem.row_count);
        problem.predict = true;
        AddTerms(random, chosen, problem);
        const HeadResult got = RunHead(*backend_, problem);
        const reference::CrossEntropyResult want = Exact(problem);
        ExpectLossAndHiddenGradient(problem, got, want);
        ExpectWeightGradient(problem, got, want);
        ExpectPredicted(problem, got, want);
        problem.keep = !problem.keep;
        ExpectSameBits(RunHead(*backend_, problem), got);
      }
    }
  }
}

// Sizes around those of the tiles that a backend may cut a product into, and
// more tiles than it forms at a time.
TEST_P(BackendTest, HeadOfManyTilesEqualsAnFp64Oracle) {
  Random random(79);
  SCOPED_TRACE(random.Trace());
  const Size sizes[] = {{1, 161, 8},     {127, 160, 64},  {129, 159, 72},
                        {257, 640, 136}, {530, 9101, 40}, {300, 8000, 24}};
  for (const Size& size : sizes) {
    for (const int chosen : {0, 1, 2 + 8}) {
      HeadProblem problem = RandomProblem(random, size, DType::kBf16,
                                          DType::kBf16, DType::kFp32, false);
      SCOPED_TRACE(size.row_count);
      problem.blocks = {512, 4000};
      problem.predict = chosen != 0;
      AddTerms(random, chosen, problem);
      problem.keep = false;
      const HeadResult got = RunHead(*backend_, problem);
      const reference::CrossEntropyResult want = Exact(problem);
      ExpectLossAndHiddenGradient(problem, got, want);
      ExpectWeightGradient(problem, got, want);
      if (problem.predict) ExpectPredicted(problem, got, want);
      problem.keep_logits = true;
      for (const double share : {0.0, 0.4, 0.9, 1.0}) {
        SCOPED_TRACE(share);
        problem.kept_share = share;
        problem.at_once = !problem.at_once;
        ExpectSameBits(RunHead(*backend_, problem), got);
      }
    }
  }
}

// More rows to a block than are sure of room, and a little more than whole
// tiles.
TEST_P(BackendTest, HeadOfLargeBlocksGivesTheSameBitsHoweverItIsKept) {
  Random random(80);
  SCOPED_TRACE(random.Trace());
  HeadProblem problem = RandomProblem(random, Size{64, 49126, 8}, DType::kBf16,
                                      DType::kBf16, DType::kFp32, false);
  problem.bounds = {0, problem.row_count};
  problem.blocks = {64, 8321};
  problem.keep = false;
  const HeadResult formed_again = RunHead(*backend_, problem);
  problem.keep_logits = true;
  problem.kept_share = 1;
  ExpectSameBits(RunHead(*backend_, problem), formed_again);
}

// Kept from the statistics on, or from the hidden gradient on, whole or in
// part; both gradients at once, or one after the other.
TEST_P(BackendTest, HeadGivesTheSameBitsHoweverItsGradientsAreFormed) {
  Random random(72);
  SCOPED_TRACE(random.Trace());
  for (const DType type : {DType::kFp32, DType::kBf16, DType::kFp16}) {
    for (const DType main : {DType::kFp32, DType::kBf16}) {
      for (const bool has_bias : {false, true}) {
        HeadProblem problem = RandomProblem(random, type, type, main, has_bias);
        problem.predict = random.Chance(0.5);
        if (random.Chance(0.3)) problem.label_smoothing = 0.1;
        if (random.Chance(0.3)) problem.softcap = 3;
        problem.keep = false;
        const HeadResult formed_again = RunHead(*backend_, problem);
        for (const bool at_once : {false, true}) {
          problem.at_once = at_once;
          problem.keep = !at_once;
          for (const double share : {1.0, 0.0, double{random.Uniform(0, 1)}}) {
            SCOPED_TRACE(share);
            problem.kept_share = share;
            problem.keep_logits = false;
            ExpectSameBits(RunHead(*backend_, problem), formed_again);
            problem.keep_logits = true;
            ExpectSameBits(RunHead(*backend_, problem), formed_again);
          }
        }
      }
    }
  }
}

TEST_P(BackendTest, HeadRepeatsItsBits) {
  Random random(73);
  SCOPED_TRACE(random.Trace());
  const HeadProblem problem =
      RandomProblem(random, DType::kBf16, DType::kBf16, DType::kFp32, true);
  ExpectSameBits(RunHead(*backend_, problem), RunHead(*backend_, problem));
}

TEST_P(BackendTest, HeadScalesExactlyWithAPowerOfTwoOfUpstream) {
  Random random(74);
  SCOPED_TRACE(random.Trace());
  for (const DType type : {DType::kFp32, DType::kBf16}) {
    HeadProblem problem = RandomProblem(random, type, type, DType::kFp32, true);
    problem.main_grad.clear();
    problem.bias_grad.clear();
    const HeadResult once = RunHead(*backend_, problem);
    for (float& g : problem.upstream) g *= 0x1p10F;
    const HeadResult scaled = RunHead(*backend_, problem);
    const auto times_1024 = [](std::vector<float> values) {
      for (float& x : values) x *= 0x1p10F;
      return values;
    };
    EXPECT_EQ(scaled.hidden_gradient, times_1024(once.hidden_gradient));
    EXPECT_EQ(scaled.main_grad, times_1024(once.main_grad));
    EXPECT_EQ(scaled.bias_grad, times_1024(once.bias_grad));
  }
}

// || got - want || <= bound * || want ||.
void ExpectRelativeNorm(const std::vector<float>& got,
                        const std::vector<float>& want, double bound) {
  ASSERT_EQ(got.size(), want.size());
  double error = 0;
  double size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = static_cast<double>(got[i]) - want[i];
    error += difference * difference;
    size += static_cast<double>(want[i]) * want[i];
  }
  EXPECT_LE(std::sqrt(error), bound * std::sqrt(size));
}

// fp32 sums in another order: within 2e-6 of the norm.
void ExpectAlike(const HeadResult& got, const HeadResult& want) {
  ExpectRelativeNorm(got.loss, want.loss, 2e-6);
  ExpectRelativeNorm(got.hidden_gradient, want.hidden_gradient, 2e-6);
  ExpectRelativeNorm(got.main_grad, want.main_grad, 2e-6);
  ExpectRelativeNorm(got.bias_grad, want.bias_grad, 2e-6);
}

TEST_P(BackendTest, HeadIsTheSameForAnySlicesAndBlocks) {
  Random random(75);
  SCOPED_TRACE(random.Trace());
  HeadProblem problem =
      RandomProblem(random, DType::kFp32, DType::kFp32, DType::kFp32, true);
  // 17 rows.
  problem.row_count = 17;
  problem.weights = Normal(random, DType::kFp32, 0.3F, 17 * problem.dim);
  problem.bias = Normal(random, DType::kFp32, 1.0F, 17);
  problem.main_grad.clear();
  problem.bias_grad.clear();
  for (int64_t& target : problem.targets)
    target = target < 0 ? -1 : target % 17;
  problem.bounds = {0, 17};
  problem.blocks = {1000, 1000};
  const HeadResult whole = RunHead(*backend_, problem);

  std::vector<int64_t> single_rows;
  for (int64_t v = 0; v <= 17; ++v) single_rows.push_back(v);
  const std::vector<std::vector<int64_t>> cuts = {
      {0, 9, 17}, {0, 16, 17}, {0, 5, 5, 17}, {0, 0, 17, 17}, single_rows};
  for (const std::vector<int64_t>& cut : cuts) {
    for (const HeadBlocks& blocks :
         {HeadBlocks{1000, 1000}, HeadBlocks{1, 1}, HeadBlocks{7, 5}}) {
      problem.bounds = cut;
      problem.blocks = blocks;
      ExpectAlike(RunHead(*backend_, problem), whole);
    }
  }
}

// The tokens of `problem` in the order `order`.
HeadProblem WithTokens(const HeadProblem& problem,
                       const std::vector<int64_t>& order) {
  HeadProblem other = problem;
  other.token_count = static_cast<int64_t>(order.size());
  other.hidden.clear();
  other.targets.clear();
  other.upstream.clear();
  for (const int64_t t : order) {
    const auto row = problem.hidden.begin() + t * problem.dim;
    other.hidden.insert(other.hidden.end(), row, row + problem.dim);
    other.targets.push_back(problem.targets[static_cast<size_t>(t)]);
    other.upstream.push_back(problem.upstream[static_cast<size_t>(t)]);
  }
  return other;
}

TEST_P(BackendTest, HeadOfPermutedOrFewerIgnoredTokensIsTheSame) {
  Random random(76);
  SCOPED_TRACE(random.Trace());
  const HeadProblem problem =
      RandomProblem(random, DType::kFp32, DType::kFp32, DType::kFp32, true);
  const HeadResult whole = RunHead(*backend_, problem);
  std::vector<int64_t> kept;
  for (int64_t t = problem.token_count; t-- > 0;) {
    if (problem.targets[static_cast<size_t>(t)] >= 0) kept.push_back(t);
  }
  const HeadResult other = RunHead(*backend_, WithTokens(problem, kept));
  // GEMMs may sum edge rows in another order, so not bit for bit.
  ExpectRelativeNorm(other.main_grad, whole.main_grad, 2e-6);
  ExpectRelativeNorm(other.bias_grad, whole.bias_grad, 2e-6);
  HeadProblem view = problem;
  view.hidden = whole.hidden_gradient;
  ExpectRelativeNorm(other.hidden_gradient, WithTokens(view, kept).hidden,
                     2e-6);
}

TEST_P(BackendTest, HeadBiasGradientsOfAllSlicesAddUpToZero) {
  Random random(77);
  SCOPED_TRACE(random.Trace());
  HeadProblem problem =
      RandomProblem(random, DType::kBf16, DType::kBf16, DType::kFp32, true);
  problem.bias_grad.clear();
  const HeadResult result = RunHead(*backend_, problem);
  double sum = 0;
  double size = 0;
  for (const float g : result.bias_grad) {
    sum += g;
    size += std::abs(g);
  }
  // softmax - onehot sums to 0 but for fp32 roundings.
  EXPECT_LE(std::abs(sum), 1e-5 * size);
}

}  // namespace
}  // namespace rowhouse::kernels
