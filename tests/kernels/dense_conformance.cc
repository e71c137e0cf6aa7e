#include <cmath>
#include <limits>

#include "tests/kernels/host_dense.h"

namespace rowhouse::kernels {
namespace {

using Type = EagerDense::Type;
using ::rowhouse::testing::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr Initializer kUniform = {Initializer::Kind::kUniform, 7, 0.5F};

EagerDense RandomDense(Random& random, Type type, bool has_master,
                       bool has_bias) {
  EagerDense table = ZeroDense(random.Integer(1, 60), random.Integer(1, 40),
                               type, has_master, has_bias);
  table.first_row_id = random.Integer(0, int64_t{1} << 40);
  FillNormal(random, type, 1.0F, table.weights);
  for (auto* values :
       {&table.master, &table.m, &table.v, &table.main_grad, &table.bias,
        &table.bias_grad, &table.bias_m, &table.bias_v}) {
    FillNormal(random, Type::kFp32, 1.0F, *values);
  }
  return table;
}

TEST_P(BackendTest, InitializeDenseGivesEachTypeTheSameValues) {
  for (const Type type : {Type::kBf16, Type::kFp32, Type::kFp16}) {
    EagerDense want = ZeroDense(5, 3, type, true, true);
    want.first_row_id = 1000;
    const BackendDense table(*backend_, want);
    ASSERT_THAT(backend_->InitializeDense(table.view(), kUniform, true),
                IsOk());
    for (int64_t i = 0; i < 15; ++i) {
      const float value = UniformInitial(7, 0.5F, 1000 + i / 3, i % 3);
      want.master[static_cast<size_t>(i)] = value;
      want.weights[static_cast<size_t>(i)] = reference::Nearest(type, value);
    }
    table.ExpectIs(want);
  }
}

TEST_P(BackendTest, InitializeDenseClearsMemoryThatIsNotFresh) {
  Random random(61);
  SCOPED_TRACE(random.Trace());
  const EagerDense used = RandomDense(random, Type::kBf16, true, true);
  const BackendDense table(*backend_, used);
  ASSERT_THAT(backend_->InitializeDense(table.view(), {}, false), IsOk());
  EagerDense want =
      ZeroDense(used.row_count, used.dim, Type::kBf16, true, true);
  table.ExpectIs(want);
}

TEST_P(BackendTest, WriteDenseRowsWritesWeightsAndMaster) {
  EagerDense want = ZeroDense(4, 2, Type::kFp16, true, false);
  const BackendDense table(*backend_, want);
  const auto rows = Array(Encode(DType::kFp16, {1, 2, 3, 4}));
  ASSERT_THAT(backend_->WriteDenseRows(table.view(), 1, 2, rows.data()),
              IsOk());
  want.weights = want.master = {0, 0, 1, 2, 3, 4, 0, 0};
  table.ExpectIs(want);
}

TEST_P(BackendTest, WriteDenseRowsTakesRowsOfTheHost) {
  EagerDense want = ZeroDense(4, 2, Type::kBf16, true, false);
  const BackendDense table(*backend_, want);
  const std::vector<uint8_t> rows = Encode(DType::kBf16, {1, 2, 3, 4});
  ASSERT_THAT(backend_->WriteDenseRows(table.view(), 2, 2, rows.data()),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  want.weights = want.master = {0, 0, 0, 0, 1, 2, 3, 4};
  table.ExpectIs(want);
}

TEST_P(BackendTest, WeightRowsOfADenseTableCanBeGathered) {
  EagerDense host = ZeroDense(3, 2, Type::kFp16, false, false);
  host.weights = {1, 2, 3, 4, 5, 6};
  const BackendDense table(*backend_, host);
  const auto slots = Array<int64_t>({2, 0});
  const auto out = Array(std::vector<uint8_t>(8, 0xff));
  ASSERT_THAT(
      backend_->GatherRows(WeightRows(table.view()), slots.span(), out.data()),
      IsOk());
  EXPECT_EQ(out.Download(), Encode(DType::kFp16, {5, 6, 1, 2}));
}

TEST_P(BackendTest, LandingFindsTheFirstFp16ThatIsNotFinite) {
  const std::vector<uint8_t> rows =
      Encode(DType::kFp16, {65504, 1, 2, 3, -kInfinity, 5});
  const auto to = Array(std::vector<uint8_t>(12));
  ContentSum content;
  RowScan scan;
  ASSERT_THAT(backend_->LandRows(rows.data(), to.data(), 2, 3, DType::kFp16, 0,
                                 content, scan),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(scan.non_finite_row, 1);
  EXPECT_EQ(scan.non_finite_column, 1);
  EXPECT_EQ(to.Download(), rows);
}

TEST_P(BackendTest, ClearMainGradTouchesGradientsAlone) {
  Random random(62);
  SCOPED_TRACE(random.Trace());
  EagerDense want = RandomDense(random, Type::kBf16, true, true);
  const BackendDense table(*backend_, want);
  ASSERT_THAT(backend_->ClearMainGrad(table.view()), IsOk());
  std::fill(want.main_grad.begin(), want.main_grad.end(), 0.0F);
  std::fill(want.bias_grad.begin(), want.bias_grad.end(), 0.0F);
  table.ExpectIs(want);
}

GradientStatistics StatisticsOf(Backend& backend, const EagerDense& host) {
  const BackendDense table(backend, host);
  GradientStatistics statistics;
  EXPECT_THAT(backend.DenseStatistics(table.view(), statistics), IsOk());
  EXPECT_THAT(backend.Synchronize(), IsOk());
  return statistics;
}

double TotalOf(const GradientStatistics& statistics) {
  double total = 0;
  for (int x = 1; x < GradientStatistics::kExponents; ++x) {
    total += std::ldexp(static_cast<double>(statistics.significand_sums[x]),
                        x - 150);
  }
  return total;
}

TEST_P(BackendTest, DenseStatisticsSumSquaresOfRowsAndBiases) {
  for (const Type main : {Type::kBf16, Type::kFp32, Type::kFp16}) {
    EagerDense host = ZeroDense(2, 2, Type::kBf16, false, true);
    host.main_type = main;
    host.main_grad = {1, 2, 0, -3};
    host.bias_grad = {0.5F, 4};
    const GradientStatistics statistics = StatisticsOf(*backend_, host);
    EXPECT_EQ(TotalOf(statistics), 1 + 4 + 9 + 0.25 + 16);
    EXPECT_EQ(statistics.row_count, 4);
    EXPECT_EQ(statistics.non_finite_row_count, 0);
  }
}

TEST_P(BackendTest, DenseStatisticsRoundEachRowsSumOnce) {
  Random random(63);
  SCOPED_TRACE(random.Trace());
  EagerDense host = ZeroDense(40, 300, Type::kBf16, false, false);
  FillNormal(random, Type::kFp32, 1.0F, host.main_grad);
  double want = 0;
  for (size_t i = 0; i < 40; ++i) {
    want += ReferenceSumOfSquares(
        {host.main_grad.begin() + static_cast<int64_t>(i) * 300,
         host.main_grad.begin() + static_cast<int64_t>(i + 1) * 300});
  }
  EXPECT_EQ(TotalOf(StatisticsOf(*backend_, host)), want);
}

TEST_P(BackendTest, DenseStatisticsCountWhatIsNotFinite) {
  EagerDense host = ZeroDense(3, 1, Type::kFp32, false, true);
  host.main_grad = {1, 2e19F, kInfinity};  // The square of 2e19 overflows.
  host.bias_grad = {0, 2, std::nanf("")};
  const GradientStatistics statistics = StatisticsOf(*backend_, host);
  EXPECT_EQ(TotalOf(statistics), 1 + 4);
  EXPECT_EQ(statistics.non_finite_row_count, 3);
}

uint64_t DigestOf(Backend& backend, const EagerDense& host) {
  const BackendDense table(backend, host);
  uint64_t sum = 0;
  EXPECT_THAT(backend.DenseDigest(table.view(), sum), IsOk());
  EXPECT_THAT(backend.Synchronize(), IsOk());
  return sum;
}

TEST_P(BackendTest, DenseDigestEqualsTheOracle) {
  Random random(64);
  SCOPED_TRACE(random.Trace());
  for (const Type type : {Type::kBf16, Type::kFp32, Type::kFp16}) {
    for (const bool has_master : {false, true}) {
      for (const bool has_bias : {false, true}) {
        const EagerDense host = RandomDense(random, type, has_master, has_bias);
        EXPECT_EQ(DigestOf(*backend_, host), host.Digest());
      }
    }
  }
}

TEST_P(BackendTest, DenseDigestSeesEveryArrayButTheGradients) {
  Random random(65);
  SCOPED_TRACE(random.Trace());
  const EagerDense host = RandomDense(random, Type::kFp32, true, true);
  const uint64_t digest = DigestOf(*backend_, host);
  const auto changed = [&](std::vector<float> EagerDense::*array) {
    EagerDense other = host;
    (other.*array).back() += 1.0F;
    return DigestOf(*backend_, other);
  };
  EXPECT_NE(changed(&EagerDense::weights), digest);
  EXPECT_NE(changed(&EagerDense::master), digest);
  EXPECT_NE(changed(&EagerDense::m), digest);
  EXPECT_NE(changed(&EagerDense::v), digest);
  EXPECT_NE(changed(&EagerDense::bias), digest);
  EXPECT_NE(changed(&EagerDense::bias_m), digest);
  EXPECT_NE(changed(&EagerDense::bias_v), digest);
  EXPECT_EQ(changed(&EagerDense::main_grad), digest);
  EXPECT_EQ(changed(&EagerDense::bias_grad), digest);
}

TEST_P(BackendTest, DenseDigestTellsOneArrayFromAnother) {
  EagerDense in_m = ZeroDense(1, 1, Type::kFp32, false, false);
  EagerDense in_v = in_m;
  in_m.m = {1.0F};
  in_v.v = {1.0F};
  EXPECT_NE(DigestOf(*backend_, in_m), DigestOf(*backend_, in_v));
}

TEST_P(BackendTest, DenseDigestsOfShardsAddUpToThatOfTheTable) {
  EagerDense whole = ZeroDense(2, 1, Type::kBf16, false, false);
  whole.weights = {1, 2};
  EagerDense first = ZeroDense(1, 1, Type::kBf16, false, false);
  first.weights = {1};
  EagerDense second = first;
  second.weights = {2};
  second.first_row_id = 1;
  EXPECT_EQ(DigestOf(*backend_, first) + DigestOf(*backend_, second),
            DigestOf(*backend_, whole));
}

}  // namespace
}  // namespace rowhouse::kernels
