#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;
using ::testing::ElementsAre;

constexpr RowAdamFactors kPlain = {0.5F, 0.25F, 0.75F, 0.0F, 1.0F, 0.25F};

// One slot's entries, one column, cut into parts of `part_size`.
HostEvent RunOf(const std::vector<float>& entries, size_t part_size) {
  HostEvent event;
  event.gradient_dtype = DType::kFp32;
  event.factors = kPlain;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i % part_size == 0) event.parts.emplace_back();
    event.parts.back().slots.push_back(0);
    event.parts.back().rows.push_back(entries[i]);
  }
  return event;
}

float RandomElement(Random& random) {
  return random.Chance(0.1) ? (random.Chance(0.5) ? 0.0F : -0.0F)
                            : Bf16ToFloat(FloatToBf16(random.Normal()));
}

HostEvent RandomEvent(Random& random, const HostTable& table, DType dtype) {
  HostEvent event;
  event.gradient_dtype = dtype;
  event.factors =
      NarrowScalars(RowAdamScalars{0.1, 0.002, random.Uniform(0.8F, 1.0F),
                                   1e-10, random.Uniform(0.5F, 2.0F)},
                    random.Integer(1, 8));
  const int64_t part_count = random.Integer(0, 6);
  for (int64_t p = 0; p < part_count; ++p) {
    HostPart& part = event.parts.emplace_back();
    const int64_t rows = random.Integer(0, 3 * table.row_count / 2);
    // Few distinct slots at times: long runs.
    const int64_t span = random.Chance(0.3)
                             ? std::min<int64_t>(3, table.row_count)
                             : table.row_count;
    for (int64_t i = 0; i < rows; ++i) {
      part.slots.push_back(random.Integer(0, span - 1));
    }
    if (random.Chance(0.3)) std::sort(part.slots.begin(), part.slots.end());
    for (int64_t i = 0; i < rows * table.dim; ++i) {
      part.rows.push_back(RandomElement(random));
    }
  }
  return event;
}

void RunRandomEvents(Backend& backend, Random& random, int64_t dim,
                     DType table_dtype, DType gradient_dtype) {
  HostTable host(random.Integer(1, 60), dim, table_dtype);
  for (float& p : host.weights) p = RandomElement(random);
  const BackendTable table(backend, host);
  HostHistory history;
  for (int e = 0; e < 6; ++e) {
    if (random.Chance(0.2)) {
      history.beta2.push_back(1.0F);  // A skipped event.
      continue;
    }
    const HostEvent event = RandomEvent(random, host, gradient_dtype);
    Apply(backend, table, event, history);
    ReferenceApply(host, event, history);
    history.beta2.push_back(event.factors.beta2);
    table.ExpectIs(host);
  }
}

TEST_P(BackendTest, AnEventFollowsTheFormula) {
  HostTable host(2, 2, DType::kFp32);
  host.weights = {1.0F, 1.0F, 5.0F, 5.0F};
  const BackendTable table(*backend_, host);
  HostEvent event;
  event.gradient_dtype = DType::kFp32;
  event.factors = kPlain;
  event.parts = {{{0}, {3.0F, -4.0F}}};
  Apply(*backend_, table, event, {});
  // Mean square 12.5; v = 12.5 / 4; u = g / sqrt(v) / 2, and the first, of p's
  // sign, takes decay p / 4.
  EXPECT_THAT(BitsOf(Decode(DType::kFp32, table.weight_bytes())),
              ElementsAre(0xbdc9c920U, 0x40086862U, 0x40a00000U, 0x40a00000U));
  EXPECT_THAT(table.second_moment_bits(), ElementsAre(0x40480000U, 0U));
  EXPECT_THAT(table.last_event(), ElementsAre(1, 0));
}

TEST_P(BackendTest, RandomEventsMatchTheScalarReference) {
  for (const int64_t dim :
       {1, 2, 3, 31, 32, 33, 100, 255, 256, 257, 511, 513, 768, 1024, 8195}) {
    for (const DType table_dtype : {DType::kBf16, DType::kFp32}) {
      for (const DType gradient_dtype : {DType::kBf16, DType::kFp32}) {
        Random random(static_cast<uint64_t>(dim));
        SCOPED_TRACE(random.Trace());
        SCOPED_TRACE(::testing::Message()
                     << "dim " << dim << ", table " << NameOf(table_dtype)
                     << ", gradient " << NameOf(gradient_dtype));
        RunRandomEvents(*backend_, random, dim, table_dtype, gradient_dtype);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
    }
  }
}

TEST_P(BackendTest, ManyEntriesMatchTheScalarReference) {
  Random random(99);
  SCOPED_TRACE(random.Trace());
  HostTable host(70000, 2, DType::kBf16);
  const BackendTable table(*backend_, host);
  HostEvent event;
  event.factors = kPlain;
  event.factors.eps = 1e-10F;  // A row may sum to zero.
  for (const int64_t rows : {40000, 1, 60000}) {
    HostPart& part = event.parts.emplace_back();
    for (int64_t i = 0; i < rows; ++i) {
      part.slots.push_back(random.Integer(0, host.row_count - 1));
      part.rows.push_back(RandomElement(random));
      part.rows.push_back(RandomElement(random));
    }
  }
  const EventReport report = Apply(*backend_, table, event, {});
  ReferenceApply(host, event, {});
  table.ExpectIs(host);
  EXPECT_EQ(report.entry_count, 100001);
  EXPECT_EQ(report.row_visits,
            std::count(host.last_event.begin(), host.last_event.end(), 1));
}

TEST_P(BackendTest, RunsAreSummedInChunksOfTenAcrossParts) {
  Random random(21);
  SCOPED_TRACE(random.Trace());
  for (const size_t length : {1, 9, 10, 11, 19, 20, 21, 100, 101, 1000}) {
    std::vector<float> entries(length);
    for (float& x : entries) x = random.Normal();
    for (const size_t part_size : {size_t{1}, size_t{7}, length}) {
      HostTable host(1, 1, DType::kFp32);
      const BackendTable table(*backend_, host);
      const HostEvent event = RunOf(entries, part_size);
      Apply(*backend_, table, event, {});
      ReferenceApply(host, event, {});
      table.ExpectIs(host);
    }
  }
}

TEST_P(BackendTest, EntriesAreSummedInTheirOrder) {
  // 2^24 absorbs a 1 that follows it, but not a 2 that the ones made before.
  const auto second_moment = [&](const std::vector<float>& entries) {
    const BackendTable table(*backend_, HostTable(1, 1, DType::kFp32));
    Apply(*backend_, table, RunOf(entries, 1), {});
    return table.second_moment_bits()[0];
  };
  EXPECT_EQ(second_moment({0x1p24F, 1, 1}), second_moment({0x1p24F}));
  EXPECT_EQ(second_moment({1, 1, 0x1p24F}), second_moment({0x1p24F + 2}));
  EXPECT_NE(second_moment({0x1p24F + 2}), second_moment({0x1p24F}));
}

TEST_P(BackendTest, RowsWithoutAGradientKeepAllBits) {
  HostTable host(3, 2, DType::kFp32);
  const BackendTable table(*backend_, host);
  const std::vector<uint32_t> odd = {0x7fc00001, 0xffffffff, 0x80000000,
                                     0x00000001, 0x7f800001, 0x80000000};
  ASSERT_THAT(backend_->Copy(odd.data(), table.view().weights, 24), IsOk());
  HostEvent event;
  event.factors = kPlain;
  event.parts = {{{1}, {1.0F, 1.0F}}};
  Apply(*backend_, table, event, {});
  std::vector<uint32_t> got(6);
  const std::vector<uint8_t> bytes = table.weight_bytes();
  std::memcpy(got.data(), bytes.data(), bytes.size());
  for (const size_t i : {0, 1, 4, 5}) EXPECT_EQ(got[i], odd[i]) << i;
  EXPECT_NE(got[2], odd[2]);
  EXPECT_THAT(table.last_event(), ElementsAre(0, 1, 0));
}

TEST_P(BackendTest, AZeroGradientDecaysTheMomentAndKeepsTheWeights) {
  HostTable host(1, 3, DType::kBf16);
  host.weights = {-0.0F, 1.5F, -2.0F};
  host.second_moment = {1.0F};
  host.last_event = {1};
  const BackendTable table(*backend_, host);
  HostEvent event;
  event.factors = kPlain;
  event.factors.eps = 1e-10F;
  event.parts = {{{0}, {-0.0F, 0.0F, -0.0F}}};
  Apply(*backend_, table, event, {{0.0F, 0.5F, 0.5F, 1.0F}});
  EXPECT_EQ(table.weight_bytes(), Encode(DType::kBf16, host.weights));
  EXPECT_THAT(table.second_moment_bits(), ElementsAre(0x3ec00000U));  // 0.375.
  EXPECT_THAT(table.last_event(), ElementsAre(4));
}

TEST_P(BackendTest, AGradientThatVanishesInTheProductKeepsItsSign) {
  HostTable host(1, 8, DType::kBf16);
  host.weights = {-0.0F, -0.0F, 0.0F, 0.0F, 1.0F, -1.0F, -0.0F, -0.0F};
  const BackendTable table(*backend_, host);
  HostEvent event;
  event.factors = kPlain;
  event.factors.grad_mul = 0x1p-50F;
  event.factors.eps = 1.0F;
  const float tiny = 0x1p-120F;
  event.parts = {{{0}, {tiny, -tiny, tiny, -tiny, -tiny, tiny, 1.0F, -1.0F}}};
  Apply(*backend_, table, event, {});
  ReferenceApply(host, event, {});
  table.ExpectIs(host);
}

TEST_P(BackendTest, TheReportCountsWhatWasTouched) {
  const BackendTable table(*backend_, HostTable(100, 6, DType::kBf16));
  HostEvent event;
  event.gradient_dtype = DType::kFp32;
  event.factors = kPlain;
  event.parts = {{{5, 7, 5}, std::vector<float>(18, 1.0F)},
                 {{}, {}},
                 {{7, 99}, std::vector<float>(12, 1.0F)}};
  const EventReport report = Apply(*backend_, table, event, {});
  EXPECT_EQ(report.entry_count, 5);
  EXPECT_EQ(report.row_visits, 3);
  EXPECT_EQ(report.untouched_row_count, 0);
  // Five fp32 gradient rows; three bf16 rows and states, read and written.
  EXPECT_EQ(report.bytes_moved, 5 * 6 * 4 + 3 * 2 * (6 * 2 + 8));
}

TEST_P(BackendTest, AnEventWithoutEntriesTouchesNothing) {
  HostTable host(3, 2, DType::kBf16);
  host.weights = {1, 2, 3, 4, 5, 6};
  const BackendTable table(*backend_, host);
  HostEvent event;
  event.factors = kPlain;
  for (int empty_parts = 0; empty_parts < 3; ++empty_parts) {
    const EventReport report = Apply(*backend_, table, event, {});
    EXPECT_EQ(report.row_visits, 0);
    EXPECT_EQ(report.bytes_moved, 0);
    table.ExpectIs(host);
    event.parts.emplace_back();
  }
}

TEST_P(BackendTest, StatisticsTakeEachRowsSquaresExactly) {
  const BackendParts parts(*backend_,
                           {{{4, 2}, {3.0F, 4.0F, 1.0F, 0.0F}},
                            {{2, 9}, {0.0F, 1.0F, 0x1p-70F, 0x1p-74F}}},
                           DType::kBf16);
  GradientStatistics statistics;
  statistics.row_count = 10;  // It adds.
  ASSERT_THAT(
      backend_->MergedStatistics(parts.span(), 2, DType::kBf16, statistics),
      IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(statistics.row_count, 13);
  EXPECT_EQ(statistics.non_finite_row_count, 0);
  GradientStatistics expected;
  expected.significand_sums[127 + 4] = 25 << 19;  // 25 = 1.5625 * 2^4.
  expected.significand_sums[127 + 1] = 2 << 22;
  // 2^-140 + 2^-148, subnormal: in units of 2^-149.
  expected.significand_sums[1] = (1 << 9) + (1 << 1);
  for (int i = 0; i < GradientStatistics::kExponents; ++i) {
    EXPECT_EQ(statistics.significand_sums[i], expected.significand_sums[i])
        << i;
  }
}

TEST_P(BackendTest, StatisticsMergeAsAnEventDoes) {
  Random random(31);
  SCOPED_TRACE(random.Trace());
  const HostTable host(200, 37, DType::kBf16);
  HostEvent event = RandomEvent(random, host, DType::kFp32);
  event.parts.push_back({{3}, std::vector<float>(37, 0.5F)});
  GradientStatistics expected;
  for (const auto& [slot, row] : ReferenceMerge(event.parts, host.dim)) {
    const auto bits = std::bit_cast<uint32_t>(ReferenceSumOfSquares(row));
    const uint32_t exponent = std::max(bits >> 23, 1U);
    expected.significand_sums[exponent] +=
        (bits & 0x7fffffU) | ((bits >> 23) == 0 ? 0U : 0x800000U);
    ++expected.row_count;
  }
  const BackendParts parts(*backend_, event.parts, DType::kFp32);
  GradientStatistics statistics;
  ASSERT_THAT(backend_->MergedStatistics(parts.span(), host.dim, DType::kFp32,
                                         statistics),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(statistics.row_count, expected.row_count);
  EXPECT_THAT(statistics.significand_sums,
              ::testing::ElementsAreArray(expected.significand_sums));
}

}  // namespace
}  // namespace rowhouse::kernels
