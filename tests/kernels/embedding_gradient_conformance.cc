#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/kernels/host_dense.h"

namespace rowhouse::kernels {
namespace {

using Type = EagerDense::Type;
using ::rowhouse::testing::Random;

struct Gradient {
  std::vector<int64_t> slots;
  std::vector<float> rows;
};

EagerDense MainOf(int64_t row_count, int64_t dim, Type main_type) {
  EagerDense table = ZeroDense(row_count, dim, Type::kFp32, false, false);
  table.main_type = main_type;
  return table;
}

// Adds `gradient` to main_grad of `table` on `backend`; gives main_grad.
std::vector<float> Accumulate(Backend& backend, const EagerDense& table,
                              const Gradient& gradient, Type type) {
  const BackendDense dense(backend, table);
  const BackendArray<int64_t> slots(backend, gradient.slots);
  const BackendArray<uint8_t> rows(backend,
                                   Encode(DTypeOf(type), gradient.rows));
  EXPECT_THAT(backend.AccumulateEmbeddingGradient(
                  MainGradOf(dense.view()),
                  {slots.span(), rows.data(), DTypeOf(type), table.dim}),
              IsOk());
  return dense.main_grad();
}

void ExpectMatchesTheOracle(Backend& backend, EagerDense table,
                            const Gradient& gradient, Type type) {
  const std::vector<float> got = Accumulate(backend, table, gradient, type);
  table.AddEmbeddingGradient(gradient.slots, gradient.rows, type);
  EXPECT_EQ(BitsOf(got), BitsOf(table.main_grad));
}

Gradient RandomGradient(Random& random, int64_t count, int64_t row_count,
                        int64_t dim, Type type) {
  Gradient gradient;
  for (int64_t i = 0; i < count; ++i) {
    // The square makes some rows frequent.
    const double u = random.Uniform(0, 1);
    gradient.slots.push_back(
        static_cast<int64_t>(u * u * static_cast<double>(row_count)));
  }
  gradient.rows.resize(static_cast<size_t>(count * dim));
  FillNormal(random, type, 1.0F, gradient.rows);
  return gradient;
}

TEST_P(BackendTest, EmbeddingGradientEqualsTheOracleForEveryTypeAndLength) {
  Random random(41);
  SCOPED_TRACE(random.Trace());
  for (const Type main : {Type::kBf16, Type::kFp32, Type::kFp16}) {
    for (const Type type : {Type::kBf16, Type::kFp32, Type::kFp16}) {
      for (const int64_t count : {0, 1, 2, 33, 1000, 9001}) {
        const int64_t dim = random.Integer(1, 40);
        EagerDense table = MainOf(random.Integer(1, 300), dim, main);
        FillNormal(random, main, 2.0F, table.main_grad);
        ExpectMatchesTheOracle(
            *backend_, table,
            RandomGradient(random, count, table.row_count, dim, type), type);
      }
    }
  }
}

TEST_P(BackendTest, EmbeddingGradientSumsRunsOfEveryLengthInChunksOfTen) {
  Random random(42);
  SCOPED_TRACE(random.Trace());
  // Row r occurs r times, r = 0 .. 21, and the occurrences are mixed.
  EagerDense table = MainOf(22, 5, Type::kFp32);
  Gradient gradient;
  for (int64_t row = 0; row < 22; ++row) {
    gradient.slots.insert(gradient.slots.end(), static_cast<size_t>(row), row);
  }
  std::shuffle(gradient.slots.begin(), gradient.slots.end(), random.engine());
  gradient.rows.resize(gradient.slots.size() * 5);
  FillNormal(random, Type::kFp32, 1.0F, gradient.rows);
  ExpectMatchesTheOracle(*backend_, table, gradient, Type::kFp32);
}

TEST_P(BackendTest, EmbeddingGradientStartsANewChunkAtTheEleventhEntry) {
  // 2^24 and nine ones stay 2^24, for each one is lost; the eleventh and
  // twelfth meet in a chunk of their own and count: 2^24 + 2.
  Gradient gradient = {std::vector<int64_t>(12, 0),
                       std::vector<float>(12, 1.0F)};
  gradient.rows[0] = 0x1p24F;
  EXPECT_THAT(
      Accumulate(*backend_, MainOf(1, 1, Type::kFp32), gradient, Type::kFp32),
      ::testing::ElementsAre(0x1p24F + 2));
}

TEST_P(BackendTest, EmbeddingGradientIsNotAFlatSum) {
  Random random(43);
  SCOPED_TRACE(random.Trace());
  Gradient gradient = {std::vector<int64_t>(100, 0), std::vector<float>(6400)};
  FillNormal(random, Type::kFp32, 1.0F, gradient.rows);
  std::vector<float> flat(64);
  for (size_t i = 0; i < gradient.rows.size(); ++i) {
    flat[i % 64] += gradient.rows[i];
  }
  EXPECT_NE(BitsOf(Accumulate(*backend_, MainOf(1, 64, Type::kFp32), gradient,
                              Type::kFp32)),
            BitsOf(flat));
}

TEST_P(BackendTest, EmbeddingGradientFollowsTheOrderOfARowsOwnEntriesOnly) {
  Random random(44);
  SCOPED_TRACE(random.Trace());
  const EagerDense table = MainOf(7, 3, Type::kFp32);
  const Gradient gradient = RandomGradient(random, 500, 7, 3, Type::kFp32);
  const std::vector<float> want =
      Accumulate(*backend_, table, gradient, Type::kFp32);

  // Entries by row, each row's in their order.
  std::vector<size_t> order(500);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return gradient.slots[a] > gradient.slots[b];
  });
  const auto permuted = [&] {
    Gradient other;
    for (const size_t i : order) {
      other.slots.push_back(gradient.slots[i]);
      for (size_t j = 0; j < 3; ++j) {
        other.rows.push_back(gradient.rows[3 * i + j]);
      }
    }
    return Accumulate(*backend_, table, other, Type::kFp32);
  };
  EXPECT_EQ(BitsOf(permuted()), BitsOf(want));

  std::reverse(order.begin(), order.end());
  const std::vector<float> reversed = permuted();
  EXPECT_NE(BitsOf(reversed), BitsOf(want));
  for (size_t i = 0; i < want.size(); ++i) {
    // Some 100 normal terms an element: 1e-5 is 100 roundings of 1e-7.
    EXPECT_NEAR(reversed[i], want[i], 1e-5F);
  }
}

TEST_P(BackendTest, EmbeddingGradientRoundsTheSumToItsOwnTypeFirst) {
  // bf16 counts in twos from 256 on: 256 + 1 is a tie and stays 256, then the
  // fp32 main_grad adds exactly.
  EagerDense table = MainOf(1, 1, Type::kFp32);
  table.main_grad = {0.25F};
  EXPECT_THAT(
      Accumulate(*backend_, table, {{0, 0}, {256.0F, 1.0F}}, Type::kBf16),
      ::testing::ElementsAre(256.25F));
  EXPECT_THAT(
      Accumulate(*backend_, table, {{0, 0}, {256.0F, 1.0F}}, Type::kFp32),
      ::testing::ElementsAre(257.25F));
  EXPECT_THAT(
      Accumulate(*backend_, table, {{0, 0}, {2048.0F, 1.0F}}, Type::kFp16),
      ::testing::ElementsAre(2048.25F));
}

TEST_P(BackendTest, EmbeddingGradientAddsInFp32AndRoundsABf16MainGradOnce) {
  EagerDense table = MainOf(2, 1, Type::kBf16);
  table.main_grad = {256.0F, 256.0F};
  // 256 + 1 is a tie and goes to even; 256 + 1.0001 goes up.
  EXPECT_THAT(
      Accumulate(*backend_, table, {{0, 1}, {1.0F, 1.0001F}}, Type::kFp32),
      ::testing::ElementsAre(256.0F, 258.0F));
}

TEST_P(BackendTest, EmbeddingGradientOfTwoUsesIsRoundedTwice) {
  EagerDense table = MainOf(1, 1, Type::kFp32);
  table.main_grad = Accumulate(*backend_, table, {{0}, {256.0F}}, Type::kBf16);
  EXPECT_THAT(Accumulate(*backend_, table, {{0}, {1.0F}}, Type::kBf16),
              ::testing::ElementsAre(257.0F));  // One part of both gives 256.
}

TEST_P(BackendTest, EmbeddingGradientLeavesOtherRowsTheirBits) {
  EagerDense table = MainOf(4, 2, Type::kFp32);
  const float payload = std::bit_cast<float>(0xffc12345U);
  table.main_grad = {-0.0F, payload, 1.0F, 2.0F, -0.0F, -0.0F, payload, -0.0F};
  const std::vector<float> got = Accumulate(
      *backend_, table, {{1, 1}, {1.0F, -0.0F, 1.0F, -0.0F}}, Type::kFp32);
  table.main_grad[2] = 3.0F;
  EXPECT_EQ(BitsOf(got), BitsOf(table.main_grad));
}

TEST_P(BackendTest, EmbeddingGradientOfMinusZeroMakesPlusZero) {
  EagerDense table = MainOf(1, 1, Type::kFp32);
  table.main_grad = {-0.0F};
  EXPECT_EQ(BitsOf(Accumulate(*backend_, table, {{0}, {-0.0F}}, Type::kFp32)),
            (std::vector<uint32_t>{0}));
}

TEST_P(BackendTest, EmbeddingGradientThatIsInfiniteSpoilsItsRowAlone) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> got = Accumulate(
      *backend_, MainOf(3, 1, Type::kFp32),
      {{0, 1, 2, 1}, {1.0F, infinity, 2.0F, -infinity}}, Type::kBf16);
  EXPECT_EQ(BitsOf(got),
            BitsOf({1.0F, std::bit_cast<float>(kCanonicalNanFp32), 2.0F}));
}

TEST_P(BackendTest, EmbeddingGradientHonoursBothRowStrides) {
  // main_grad: 3 rows of 2 in rows of 3; gradient: 2 rows of 2 in rows of 4.
  const auto main_grad = Array<float>({1, 2, -7, 3, 4, -7, 5, 6, -7});
  const auto slots = Array<int64_t>({2, 0});
  const auto rows = Array<float>({10, 20, 99, 99, 30, 40, 99, 99});
  ASSERT_THAT(backend_->AccumulateEmbeddingGradient(
                  {main_grad.data(), DType::kFp32, 3, 2, 3},
                  {slots.span(), rows.data(), DType::kFp32, 4}),
              IsOk());
  EXPECT_THAT(main_grad.Download(),
              ::testing::ElementsAre(31, 42, -7, 3, 4, -7, 15, 26, -7));
}

TEST_P(BackendTest, EmbeddingGradientReachesRowsBeyondTwoToThe31Elements) {
  // Row 2,796,203 of 768 columns begins at element 2^31 + 256.
  constexpr int64_t kDim = 768;
  constexpr int64_t kRow = 2796203;
  absl::StatusOr<Buffer> memory =
      backend_->Allocate((kRow + 1) * kDim * int64_t{sizeof(uint16_t)});
  if (absl::IsResourceExhausted(memory.status()) &&
      std::getenv("ROWHOUSE_REQUIRE_GPU") == nullptr) {
    GTEST_SKIP() << memory.status();
  }
  ASSERT_THAT(memory, IsOk());
  const auto slots = Array<int64_t>({kRow, kRow - 1, kRow});
  const auto rows = Array(std::vector<float>(3 * kDim, 0.5F));
  ASSERT_THAT(backend_->AccumulateEmbeddingGradient(
                  {memory->data(), DType::kBf16, kRow + 1, kDim, kDim},
                  {slots.span(), rows.data(), DType::kFp32, kDim}),
              IsOk());
  std::vector<uint16_t> last(2 * kDim);
  ASSERT_THAT(backend_->Copy(memory->as<uint16_t>() + (kRow - 1) * kDim,
                             last.data(), 2 * kDim * 2),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(Bf16ToFloat(last.front()), 0.5F);
  EXPECT_EQ(Bf16ToFloat(last.back()), 1.0F);
}

}  // namespace
}  // namespace rowhouse::kernels
