#include <memory>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "tests/kernels/head_problem.h"
#include "tests/kernels/host_dense.h"

namespace rowhouse::kernels {
namespace {

using Type = EagerDense::Type;
using ::rowhouse::testing::Random;

std::unique_ptr<Backend> WithThreads(int thread_count,
                                     CpuIsa isa = BestCpuIsa()) {
  return cpu::MakeCpuBackend(cpu::MakeThreadExecutor(thread_count, isa));
}

std::vector<float> Normal(Random& random, DType dtype, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) x = random.Normal();
  return Representable(dtype, values);
}

HeadProblem LargeProblem(Random& random, DType dtype) {
  HeadProblem problem;
  problem.token_count = 150;
  problem.row_count = 333;
  problem.dim = 48;
  problem.hidden_dtype = dtype;
  problem.weight_dtype = dtype;
  problem.hidden = Normal(random, dtype, 150 * 48);
  problem.weights = Normal(random, dtype, 333 * 48);
  problem.bias = Normal(random, DType::kFp32, 333);
  for (int t = 0; t < 150; ++t) {
    problem.targets.push_back(random.Integer(0, 332));
    problem.upstream.push_back(random.Chance(0.1) ? 0.0F : 1.0F / 150);
  }
  problem.bounds = {0, 200, 333};
  problem.blocks = {16, 32};
  return problem;
}

std::string NameOfIsa(const ::testing::TestParamInfo<CpuIsa>& tested) {
  return NameOf(tested.param);
}

class HeadThreadsTest : public ::testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (!HasCpuIsa(GetParam())) {
      GTEST_SKIP() << "this CPU does not run " << NameOf(GetParam());
    }
  }
};

TEST_P(HeadThreadsTest, TheHeadGivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(81);
  SCOPED_TRACE(random.Trace());
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    HeadProblem problem = LargeProblem(random, dtype);
    for (const bool keep : {false, true}) {
      problem.keep = keep;
      const HeadResult one = RunHead(*WithThreads(1, GetParam()), problem);
      ExpectSameBits(RunHead(*WithThreads(2, GetParam()), problem), one);
      ExpectSameBits(RunHead(*WithThreads(8, GetParam()), problem), one);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, HeadThreadsTest,
                         ::testing::Values(CpuIsa::kPortable, CpuIsa::kAvx2,
                                           CpuIsa::kAvx512, CpuIsa::kAmx),
                         NameOfIsa);

// An embedding's gradient, its statistics, and the event; the whole table
// after.
void RunDenseEvent(Backend& backend, const EagerDense& before,
                   const std::vector<int64_t>& slots,
                   const std::vector<float>& rows, EagerDense& after,
                   GradientStatistics& statistics) {
  const BackendDense table(backend, before);
  const BackendArray<int64_t> slot_array(backend, slots);
  const BackendArray<uint8_t> row_array(backend, Encode(DType::kBf16, rows));
  EXPECT_THAT(
      backend.AccumulateEmbeddingGradient(
          MainGradOf(table.view()),
          {slot_array.span(), row_array.data(), DType::kBf16, before.dim}),
      IsOk());
  EXPECT_THAT(backend.DenseStatistics(table.view(), statistics), IsOk());
  const AdamWFactors factors =
      NarrowScalars(AdamWScalars{1e-3, 0.1, 0.9, 0.95, 1e-8, 0.1, 0.05, 1}, 1);
  EventReport report;
  EXPECT_THAT(backend.ApplyAdamW(table.view(), factors,
                                 NonFinitePolicy::kReject, report),
              IsOk());
  EXPECT_EQ(report.row_visits, before.row_count);
  uint64_t digest = 0;
  EXPECT_THAT(backend.DenseDigest(table.view(), digest), IsOk());
  after = table.Download();
  EXPECT_EQ(digest, after.Digest());
}

TEST(CpuThreadsTest, DenseTablesGiveTheSameBitsOnAnyNumberOfThreads) {
  Random random(82);
  SCOPED_TRACE(random.Trace());
  EagerDense before = ZeroDense(500, 130, Type::kBf16, true, true);
  FillNormal(random, Type::kBf16, 1.0F, before.weights);
  before.master = before.weights;
  FillNormal(random, Type::kFp32, 1.0F, before.bias_grad);
  std::vector<int64_t> slots(9000);
  for (int64_t& slot : slots) {
    slot = random.Chance(0.5) ? 3 : random.Integer(0, 499);
  }
  std::vector<float> rows(slots.size() * 130);
  FillNormal(random, Type::kBf16, 1.0F, rows);

  EagerDense one;
  GradientStatistics one_statistics;
  RunDenseEvent(*WithThreads(1), before, slots, rows, one, one_statistics);
  for (const int thread_count : {2, 8}) {
    EagerDense other;
    GradientStatistics statistics;
    RunDenseEvent(*WithThreads(thread_count), before, slots, rows, other,
                  statistics);
    EXPECT_EQ(other.Digest(), one.Digest());
    EXPECT_EQ(BitsOf(other.weights), BitsOf(one.weights));
    EXPECT_TRUE(std::equal(std::begin(statistics.significand_sums),
                           std::end(statistics.significand_sums),
                           std::begin(one_statistics.significand_sums)));
  }
}

}  // namespace
}  // namespace rowhouse::kernels
