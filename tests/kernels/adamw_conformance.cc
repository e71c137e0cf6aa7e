#include <cmath>
#include <limits>

#include "tests/kernels/host_dense.h"

namespace rowhouse::kernels {
namespace {

using Type = EagerDense::Type;
using ::rowhouse::testing::Random;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::bit_cast<float>(kCanonicalNanFp32);

AdamWScalars ScalarsOf(const EagerDense::Scalars& s) {
  return {s.learning_rate,
          s.weight_decay,
          s.beta1,
          s.beta2,
          s.eps,
          1.0 - std::pow(s.beta1, s.event),
          1.0 - std::pow(s.beta2, s.event),
          s.gradient_scale};
}

// One event on `backend`, waited for.
EventReport Apply(Backend& backend, const BackendDense& table,
                  const AdamWFactors& factors, NonFinitePolicy policy) {
  EventReport report;
  EXPECT_THAT(backend.ApplyAdamW(table.view(), factors, policy, report),
              IsOk());
  EXPECT_THAT(backend.Synchronize(), IsOk());
  return report;
}

void FillGradients(Random& random, EagerDense& table) {
  FillNormal(random, table.main_type, 0.1F, table.main_grad);
  FillNormal(random, Type::kFp32, 0.1F, table.bias_grad);
}

// Three events, by the backend and by the oracle.
void ExpectThreeEventsEqualTheOracle(Backend& backend, Random& random,
                                     EagerDense table) {
  FillNormal(random, table.type, 0.5F, table.weights);
  if (table.has_master) table.master = table.weights;
  FillNormal(random, Type::kFp32, 0.5F, table.bias);
  for (int event = 1; event <= 3; ++event) {
    FillGradients(random, table);
    const BackendDense dense(backend, table);
    const EagerDense::Scalars scalars = {1e-3, 0.1,   0.9, 0.95,
                                         1e-8, event, 0.75};
    Apply(backend, dense, NarrowScalars(ScalarsOf(scalars), 3),
          NonFinitePolicy::kReject);
    EXPECT_EQ(table.ApplyAdamW(scalars, 3, true), 0);
    dense.ExpectIs(table);
  }
}

TEST_P(BackendTest, AdamWEqualsTheOracleForEveryTypeWithMasterAndBias) {
  Random random(51);
  SCOPED_TRACE(random.Trace());
  for (const Type type : {Type::kBf16, Type::kFp32, Type::kFp16}) {
    for (const Type main : {Type::kBf16, Type::kFp32, Type::kFp16}) {
      for (const bool has_master : {false, true}) {
        for (const bool has_bias : {false, true}) {
          EagerDense table =
              ZeroDense(random.Integer(1, 70), random.Integer(1, 300), type,
                        has_master, has_bias);
          table.main_type = main;
          ExpectThreeEventsEqualTheOracle(*backend_, random, table);
        }
      }
    }
  }
}

// A table of two rows of one, weights 1, gradients `g`, no momentum: a finite
// gradient moves a weight by the learning rate.
EagerDense TwoRows(Type type, std::vector<float> g) {
  EagerDense table = ZeroDense(2, 1, type, false, false);
  table.weights = {1.0F, 1.0F};
  table.main_grad = std::move(g);
  return table;
}

AdamWFactors SignDescent(double learning_rate, double weight_decay = 0) {
  return NarrowScalars(AdamWScalars{learning_rate, weight_decay, 0, 0, 0, 1, 1},
                       1);
}

TEST_P(BackendTest, AdamWWithoutMomentumMovesByTheLearningRate) {
  const BackendDense table(*backend_, TwoRows(Type::kFp32, {4.0F, -0.5F}));
  Apply(*backend_, table, SignDescent(0.25), NonFinitePolicy::kReject);
  EXPECT_THAT(table.weights(), ::testing::ElementsAre(0.75F, 1.25F));
  EXPECT_THAT(table.main_grad(), ::testing::ElementsAre(0.0F, 0.0F));
}

TEST_P(BackendTest, AdamWDecaysWeightsApartFromTheGradient) {
  const BackendDense table(*backend_, TwoRows(Type::kFp32, {4.0F, 4.0F}));
  // 1 * (1 - 0.25 * 2) - 0.25.
  Apply(*backend_, table, SignDescent(0.25, 2), NonFinitePolicy::kReject);
  EXPECT_THAT(table.weights(), ::testing::ElementsAre(0.25F, 0.25F));
}

TEST_P(BackendTest, AdamWOnAMasterKeepsWhatTheWeightsCannotHold) {
  EagerDense host = ZeroDense(1, 1, Type::kBf16, true, false);
  host.weights = {1.0F};
  host.master = {1.0F};
  const BackendDense table(*backend_, host);
  const float one = 1.0F;
  for (int event = 0; event < 3; ++event) {
    ASSERT_THAT(backend_->Copy(&one, table.view().main_grad, sizeof(one)),
                IsOk());
    Apply(*backend_, table, SignDescent(0x1p-10), NonFinitePolicy::kReject);
  }
  EXPECT_THAT(table.master(), ::testing::ElementsAre(1.0F - 3 * 0x1p-10F));
  EXPECT_THAT(table.weights(), ::testing::ElementsAre(1.0F - 0x1p-8F));
}

TEST_P(BackendTest, AdamWKeepsTheBitsOfARowWhoseGradientIsNotFinite) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    for (const NonFinitePolicy policy :
         {NonFinitePolicy::kReject, NonFinitePolicy::kSkipRow}) {
      EagerDense host = ZeroDense(2, 2, Type::kBf16, true, true);
      host.weights = host.master = {1, 2, 3, 4};
      host.m = host.v = {0.5F, 0.5F, 0.5F, 0.5F};
      host.bias = host.bias_m = host.bias_v = {1, 2};
      host.main_grad = {1, 1, 1, bad};
      host.bias_grad = {1, 1};
      const BackendDense table(*backend_, host);
      const EventReport report =
          Apply(*backend_, table,
                NarrowScalars(ScalarsOf({1e-3, 0.1, 0.9, 0.95, 1e-8, 1, 1}), 1),
                policy);
      EXPECT_EQ(report.row_visits, 2);
      EXPECT_EQ(report.untouched_row_count, 1);
      EXPECT_EQ(host.ApplyAdamW({1e-3, 0.1, 0.9, 0.95, 1e-8, 1, 1}, 1, true),
                1);
      table.ExpectIs(host);
      EXPECT_THAT(table.main_grad(), ::testing::Each(0.0F));
      EXPECT_THAT(table.bias_grad(), ::testing::Each(0.0F));
    }
  }
}

TEST_P(BackendTest, AdamWKeepsARowWhoseBiasGradientIsNotFinite) {
  EagerDense host = ZeroDense(2, 1, Type::kFp32, false, true);
  host.weights = {1, 1};
  host.main_grad = {1, 1};
  host.bias_grad = {kNan, 1};
  const BackendDense table(*backend_, host);
  const EventReport report =
      Apply(*backend_, table, SignDescent(0.5), NonFinitePolicy::kSkipRow);
  EXPECT_EQ(report.untouched_row_count, 1);
  EXPECT_THAT(table.weights(), ::testing::ElementsAre(1.0F, 0.5F));
  EXPECT_THAT(table.bias(), ::testing::ElementsAre(0.0F, -0.5F));
}

TEST_P(BackendTest, AdamWKeepsARowWhoseSecondMomentOverflows) {
  const BackendDense table(*backend_, TwoRows(Type::kFp32, {2e19F, 1.0F}));
  const EventReport report =
      Apply(*backend_, table, SignDescent(0.5), NonFinitePolicy::kReject);
  EXPECT_EQ(report.untouched_row_count, 1);
  EXPECT_THAT(table.weights(), ::testing::ElementsAre(1.0F, 0.5F));
}

TEST_P(BackendTest, AdamWKeepsARowThatOverflowsWhenItIsRounded) {
  for (const bool has_master : {false, true}) {
    EagerDense host = ZeroDense(2, 1, Type::kFp16, has_master, false);
    host.weights = {65504.0F, 1.0F};
    if (has_master) host.master = host.weights;
    host.main_grad = {-1.0F, -1.0F};
    const BackendDense table(*backend_, host);
    const EventReport report =
        Apply(*backend_, table, SignDescent(32), NonFinitePolicy::kReject);
    EXPECT_EQ(report.untouched_row_count, 1);
    EXPECT_THAT(table.weights(), ::testing::ElementsAre(65504.0F, 33.0F));
  }
}

TEST_P(BackendTest, AdamWUnderPropagateStoresCanonicalNans) {
  const float payload = std::bit_cast<float>(0xffc12345U);
  EagerDense host = TwoRows(Type::kBf16, {payload, 1.0F});
  const BackendDense table(*backend_, host);
  const EventReport report =
      Apply(*backend_, table, SignDescent(0.5), NonFinitePolicy::kPropagate);
  EXPECT_EQ(report.untouched_row_count, 0);
  EXPECT_EQ(host.ApplyAdamW({0.5, 0, 0, 0, 0, 1, 1}, 1, false), 0);
  table.ExpectIs(host);
  EXPECT_EQ(BitsOf(table.weights()), BitsOf({kNan, 0.5F}));
}

TEST_P(BackendTest, AdamWOfNoRowsDoesNothing) {
  const BackendDense table(*backend_, ZeroDense(0, 8, Type::kBf16, true, true));
  const EventReport report =
      Apply(*backend_, table, SignDescent(0.5), NonFinitePolicy::kReject);
  EXPECT_EQ(report.row_visits, 0);
}

}  // namespace
}  // namespace rowhouse::kernels
