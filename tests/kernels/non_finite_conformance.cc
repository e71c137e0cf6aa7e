#include <limits>

#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

using ::testing::ElementsAre;

constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// An event on three rows of two columns whose middle row goes wrong.
struct BadRow {
  const char* what;
  std::vector<float> gradient;  // Of row 1, once or twice.
  float second_moment = 0.0F;   // Of row 1.
  std::vector<float> weights;   // Of row 1.
  RowAdamFactors factors = {0.5F, 0.25F, 0.75F, 0.0F, 1.0F, 0.25F};
};

std::vector<BadRow> BadRows() {
  std::vector<BadRow> rows = {
      {"a NaN gradient", {kNan, 1.0F}, 0.0F, {1.0F, 1.0F}},
      {"an infinite gradient", {1.0F, -kInfinity}, 0.0F, {1.0F, 1.0F}},
      {"a merged sum that overflows",
       {3e38F, 1.0F, 3e38F, 1.0F},
       0.0F,
       {1.0F, 1.0F}},
      {"a mean square that overflows", {1e20F, 1.0F}, 0.0F, {1.0F, 1.0F}},
      {"a second moment that overflows", {1e19F, 1e19F}, kMax, {1.0F, 1.0F}},
      {"a second moment that was NaN", {1.0F, 1.0F}, kNan, {1.0F, 1.0F}},
      {"a weight that overflows", {0.0F, -1.0F}, 0.0F, {1.0F, 3.3e38F}},
      {"a weight that was NaN", {1.0F, 1.0F}, 0.0F, {1.0F, kNan}},
  };
  rows[4].factors.sq_mul = 4.0F;
  rows[6].factors.step_size = 1e38F;
  return rows;
}

HostTable TableOf(const BadRow& bad, DType dtype) {
  HostTable host(3, 2, dtype);
  host.weights = {1, 2, bad.weights[0], bad.weights[1], 3, 4};
  if (dtype == DType::kBf16) {
    host.weights = Decode(dtype, Encode(dtype, host.weights));
  }
  host.second_moment = {0.5F, bad.second_moment, 0.25F};
  return host;
}

HostEvent EventOf(const BadRow& bad, NonFinitePolicy policy) {
  HostEvent event;
  event.gradient_dtype = DType::kFp32;
  event.factors = bad.factors;
  event.policy = policy;
  event.parts = {{{2, 0}, {1, 1, 1, 1}}};
  for (size_t i = 0; i < bad.gradient.size(); i += 2) {
    event.parts.push_back({{1}, {bad.gradient[i], bad.gradient[i + 1]}});
  }
  return event;
}

TEST_P(BackendTest, ARowThatIsNotFiniteKeepsAllBitsUnlessPropagated) {
  for (const BadRow& bad : BadRows()) {
    for (const DType dtype : {DType::kBf16, DType::kFp32}) {
      for (const NonFinitePolicy policy :
           {NonFinitePolicy::kReject, NonFinitePolicy::kSkipRow}) {
        SCOPED_TRACE(bad.what);
        HostTable host = TableOf(bad, dtype);
        const BackendTable table(*backend_, host);
        const EventReport report =
            Apply(*backend_, table, EventOf(bad, policy), {{0.0F, 1.0F}});
        EXPECT_EQ(report.untouched_row_count, 1);
        EXPECT_EQ(report.row_visits, 3);
        EXPECT_THAT(table.last_event(), ElementsAre(2, 0, 2));
        ReferenceApply(host, EventOf(bad, policy), {{0.0F, 1.0F}});
        table.ExpectIs(host);
      }
    }
  }
}

TEST_P(BackendTest, PropagatedRowsAreStoredWhateverTheirValues) {
  for (const BadRow& bad : BadRows()) {
    for (const DType dtype : {DType::kBf16, DType::kFp32}) {
      SCOPED_TRACE(bad.what);
      HostTable host = TableOf(bad, dtype);
      const BackendTable table(*backend_, host);
      const HostEvent event = EventOf(bad, NonFinitePolicy::kPropagate);
      const EventReport report = Apply(*backend_, table, event, {{0.0F, 1.0F}});
      EXPECT_EQ(report.untouched_row_count, 0);
      EXPECT_THAT(table.last_event(), ElementsAre(2, 2, 2));
      ReferenceApply(host, event, {{0.0F, 1.0F}});
      table.ExpectIs(host);
    }
  }
}

TEST_P(BackendTest, EveryStoredNanIsTheCanonicalOne) {
  for (const uint32_t nan : {0x7f800001U, 0xffc00000U, 0xffffffffU}) {
    const BackendTable table(*backend_, HostTable(1, 2, DType::kFp32));
    const BackendTable narrow(*backend_, HostTable(1, 2, DType::kBf16));
    HostEvent event;
    event.gradient_dtype = DType::kFp32;
    event.policy = NonFinitePolicy::kPropagate;
    event.factors = {0.5F, 0.25F, 0.75F, 0.0F, 1.0F, 0.25F};
    event.parts = {{{0}, {std::bit_cast<float>(nan), 1.0F}}};
    Apply(*backend_, table, event, {});
    Apply(*backend_, narrow, event, {});
    EXPECT_THAT(table.weight_bytes(),
                ElementsAre(0, 0, 0xc0, 0x7f, 0, 0, 0xc0, 0x7f));
    EXPECT_THAT(narrow.weight_bytes(), ElementsAre(0xc0, 0x7f, 0xc0, 0x7f));
    EXPECT_THAT(table.second_moment_bits(), ElementsAre(0x7fc00000U));
  }
}

TEST_P(BackendTest, StatisticsCountRowsThatAreNotFiniteApart) {
  const BackendParts parts(
      *backend_, {{{0, 1, 2, 3, 3}, {1.0F, kNan, 1e20F, 3e38F, 3e38F}}},
      DType::kFp32);
  GradientStatistics statistics;
  ASSERT_THAT(
      backend_->MergedStatistics(parts.span(), 1, DType::kFp32, statistics),
      IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(statistics.row_count, 4);
  EXPECT_EQ(statistics.non_finite_row_count, 3);
  GradientStatistics expected;
  expected.significand_sums[127] = 1 << 23;
  EXPECT_THAT(statistics.significand_sums,
              ::testing::ElementsAreArray(expected.significand_sums));
}

}  // namespace
}  // namespace rowhouse::kernels
