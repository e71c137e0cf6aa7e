#include "kernels/hash.h"
#include "kernels/ngram_hash.h"
#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;
using ::testing::ElementsAre;

float Sign(const SignPool& pool, int64_t row, int64_t column) {
  const uint64_t word = SignWord(pool.seed, row, column / 64);
  return (word >> (column % 64) & 1) != 0 ? -1.0F : 1.0F;
}

float Rounded(DType dtype, float x) {
  return dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(x)) : Canonical(x);
}

std::vector<float> RandomValues(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) {
    x = random.Chance(0.05) ? -0.0F : Bf16ToFloat(FloatToBf16(random.Normal()));
  }
  return values;
}

std::vector<int32_t> RandomTokens(Random& random, int64_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) {
    token = static_cast<int32_t>(random.Integer(0, 50256));
  }
  return tokens;
}

// Row gradients of one step, [2T, dim], by the scalar words of the headers.
std::vector<float> ReferenceBackward(const std::vector<int32_t>& tokens,
                                     const std::vector<float>& gradient,
                                     int64_t dim, const SignPool& pool) {
  const auto count = static_cast<int64_t>(tokens.size());
  std::vector<float> rows;
  for (int64_t i = 0; i < 2 * count; ++i) {
    const int64_t t = i % count;
    const int64_t sign_row =
        i < count ? BigramSignRow(tokens.data(), t, pool.row_count)
                  : TrigramSignRow(tokens.data(), t, pool.row_count);
    for (int64_t j = 0; j < dim; ++j) {
      rows.push_back(gradient[static_cast<size_t>(t * dim + j)] *
                     Sign(pool, sign_row, j));
    }
  }
  return rows;
}

TEST_P(BackendTest, SlotsAreFoundAndTheFirstMissingNamed) {
  const auto want = Array<int64_t>({2, 3, 7, int64_t{1} << 40});
  const auto ids = Array<int64_t>({7, 2, int64_t{1} << 40, 3, 7});
  const auto slots = Array(std::vector<int64_t>(5, -9));
  int64_t missing = -9;
  ASSERT_THAT(
      backend_->FindSlots(want.span(), ids.span(), slots.span(), missing),
      IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(missing, -1);
  EXPECT_THAT(slots.Download(), ElementsAre(2, 0, 3, 1, 2));
  // Many, of which two are not there.
  std::vector<int64_t> many(10000, 3);
  many[9000] = 4;
  many[9999] = int64_t{1} << 41;
  const auto many_ids = Array(many);
  const auto many_slots = Array(many);
  ASSERT_THAT(backend_->FindSlots(want.span(), many_ids.span(),
                                  many_slots.span(), missing),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(missing, 9000);
  ASSERT_THAT(backend_->FindSlots({}, ids.span(), slots.span(), missing),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(missing, 0);
  ASSERT_THAT(backend_->FindSlots(want.span(), {}, {}, missing), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(missing, -1);
}

TEST_P(BackendTest, NgramRowIdsCoverBothTablesOfTheLayout) {
  const auto tokens =
      Array<int32_t>({50256, 464, 2068, 7586, 21831, 50256, 50256});
  const auto ids = Array(std::vector<int64_t>(14, -1));
  ASSERT_THAT(backend_->NgramRowIds(tokens.span(), 84602880, ids.span()),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(ids.Download(),
              ElementsAre(42301439, 30057605, 36955973, 25891877, 38010350,
                          25053104, 20052728, 84602879, 84602879, 79010554,
                          60889994, 59548946, 67212682, 60420883));
}

TEST_P(BackendTest, NoTokensGiveNothingAndOneTokenTheReservedIds) {
  EXPECT_THAT(backend_->NgramRowIds({}, 84602880, {}), IsOk());
  const auto token = Array<int32_t>({7});
  const auto ids = Array(std::vector<int64_t>(2, -1));
  ASSERT_THAT(backend_->NgramRowIds(token.span(), 84602880, ids.span()),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(ids.Download(), ElementsAre(42301439, 84602879));

  EXPECT_THAT(backend_->NgramEmbedForward(nullptr, DType::kBf16, 4, {}, {}, {},
                                          nullptr),
              IsOk());
  EXPECT_THAT(
      backend_->NgramEmbedBackward(nullptr, DType::kBf16, 4, {}, {}, nullptr),
      IsOk());
  const auto out = Array(std::vector<uint8_t>(2 * 4 * 2, 0xff));
  EXPECT_THAT(backend_->SumNgramGradients({}, DType::kBf16, 4, {}, 2,
                                          DType::kBf16, out.data()),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(out.Download(), ::testing::Each(0));
}

TEST_P(BackendTest, ForwardAddsTwoSignedRowsWithOneRounding) {
  Random random(41);
  SCOPED_TRACE(random.Trace());
  SignPool pool;
  pool.seed = 1234;
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const int64_t dim : {1, 16, 63, 64, 65, 768}) {
      for (const int64_t count : {1, 2, 3, 100}) {
        const std::vector<int32_t> tokens = RandomTokens(random, count);
        const std::vector<float> cache = RandomValues(random, 20 * dim);
        std::vector<int64_t> slots;
        for (int64_t i = 0; i < 2 * count; ++i) {
          slots.push_back(random.Integer(0, 19));
        }
        std::vector<float> expected;
        for (int64_t t = 0; t < count; ++t) {
          const int64_t bigram =
              BigramSignRow(tokens.data(), t, pool.row_count);
          const int64_t trigram =
              TrigramSignRow(tokens.data(), t, pool.row_count);
          const int64_t b = slots[static_cast<size_t>(t)] * dim;
          const int64_t c = slots[static_cast<size_t>(count + t)] * dim;
          for (int64_t j = 0; j < dim; ++j) {
            expected.push_back(Rounded(
                dtype,
                cache[static_cast<size_t>(b + j)] * Sign(pool, bigram, j) +
                    cache[static_cast<size_t>(c + j)] *
                        Sign(pool, trigram, j)));
          }
        }
        const auto device_cache = Array(Encode(dtype, cache));
        const auto device_tokens = Array(tokens);
        const auto device_slots = Array(slots);
        const auto out = Array(std::vector<uint8_t>(
            static_cast<size_t>(count * dim * SizeOf(dtype)), 0xff));
        ASSERT_THAT(backend_->NgramEmbedForward(
                        device_cache.data(), dtype, dim, device_tokens.span(),
                        device_slots.span(), pool, out.data()),
                    IsOk());
        ASSERT_THAT(backend_->Synchronize(), IsOk());
        EXPECT_EQ(out.Download(), Encode(dtype, expected)) << dim;
      }
    }
  }
}

TEST_P(BackendTest, BackwardFlipsSignsExactly) {
  Random random(42);
  SCOPED_TRACE(random.Trace());
  SignPool pool;
  pool.seed = 99;
  pool.row_count = 16;
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const int64_t dim : {1, 64, 100}) {
      const std::vector<int32_t> tokens = RandomTokens(random, 50);
      const std::vector<float> gradient = RandomValues(random, 50 * dim);
      const auto device_tokens = Array(tokens);
      const auto device_gradient = Array(Encode(dtype, gradient));
      const auto out = Array(std::vector<uint8_t>(
          static_cast<size_t>(100 * dim * SizeOf(dtype)), 0xff));
      ASSERT_THAT(
          backend_->NgramEmbedBackward(device_gradient.data(), dtype, dim,
                                       device_tokens.span(), pool, out.data()),
          IsOk());
      ASSERT_THAT(backend_->Synchronize(), IsOk());
      EXPECT_EQ(out.Download(),
                Encode(dtype, ReferenceBackward(tokens, gradient, dim, pool)));
    }
  }
}

TEST_P(BackendTest, AnImportedPoolOfTheSameBitsGivesTheSameRows) {
  SignPool computed;
  computed.seed = 5;
  computed.row_count = 8;
  constexpr int64_t kDim = 100;
  std::vector<uint64_t> words;
  for (int64_t row = 0; row < 8; ++row) {
    for (int64_t word = 0; word < 2; ++word) {
      words.push_back(SignWord(5, row, word));
    }
  }
  const auto device_words = Array(words);
  SignPool imported;
  imported.row_count = 8;
  imported.words = device_words.data();
  const auto tokens = Array<int32_t>({1, 2, 3, 4, 5});
  const auto gradient =
      Array(Encode(DType::kBf16, std::vector<float>(5 * kDim, 1.0F)));
  std::vector<std::vector<uint8_t>> results;
  for (const SignPool& pool : {computed, imported}) {
    const auto out = Array(std::vector<uint8_t>(2 * 5 * kDim * 2));
    ASSERT_THAT(
        backend_->NgramEmbedBackward(gradient.data(), DType::kBf16, kDim,
                                     tokens.span(), pool, out.data()),
        IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    results.push_back(out.Download());
  }
  EXPECT_EQ(results[0], results[1]);
}

// Steps of a cycle, on the host and in the backend's memory.
struct Cycle {
  std::vector<BackendArray<int32_t>> tokens;
  std::vector<BackendArray<int64_t>> slots;
  std::vector<BackendArray<uint8_t>> gradients;
  std::vector<NgramStep> steps;
  std::vector<HostPart> row_gradients;
};

Cycle RandomCycle(Backend& backend, Random& random, int64_t dim,
                  int64_t slot_count, DType dtype, const SignPool& pool) {
  Cycle cycle;
  for (const int64_t count : {0, 1, 40, 3, 200}) {
    const std::vector<int32_t> tokens = RandomTokens(random, count);
    const std::vector<float> gradient = RandomValues(random, count * dim);
    HostPart part;
    for (int64_t i = 0; i < 2 * count; ++i) {
      part.slots.push_back(2 * random.Integer(0, slot_count / 2 - 1));
    }
    if (count > 0) {
      part.rows = ReferenceBackward(tokens, gradient, dim, pool);
    }
    cycle.tokens.emplace_back(backend, tokens);
    cycle.slots.emplace_back(backend, part.slots);
    cycle.gradients.emplace_back(backend, Encode(dtype, gradient));
    cycle.steps.push_back({cycle.tokens.back().span(),
                           cycle.slots.back().span(),
                           cycle.gradients.back().data()});
    cycle.row_gradients.push_back(std::move(part));
  }
  return cycle;
}

TEST_P(BackendTest, CycleSumsAreRunSumsOfRowGradientsRoundedOnce) {
  Random random(43);
  SCOPED_TRACE(random.Trace());
  SignPool pool;
  pool.seed = 77;
  for (const DType gradient_dtype : {DType::kBf16, DType::kFp32}) {
    for (const DType wire_dtype : {DType::kBf16, DType::kFp32}) {
      for (const int64_t dim : {1, 33, 768}) {
        constexpr int64_t kSlots = 41;  // The odd ones get no entry.
        const Cycle cycle =
            RandomCycle(*backend_, random, dim, kSlots, gradient_dtype, pool);
        std::vector<float> expected(static_cast<size_t>(kSlots * dim));
        for (const auto& [slot, row] :
             ReferenceMerge(cycle.row_gradients, dim)) {
          std::copy(row.begin(), row.end(), expected.begin() + slot * dim);
        }
        const auto out = Array(std::vector<uint8_t>(
            static_cast<size_t>(kSlots * dim * SizeOf(wire_dtype)), 0xff));
        ASSERT_THAT(
            backend_->SumNgramGradients(cycle.steps, gradient_dtype, dim, pool,
                                        kSlots, wire_dtype, out.data()),
            IsOk());
        ASSERT_THAT(backend_->Synchronize(), IsOk());
        EXPECT_EQ(out.Download(), Encode(wire_dtype, expected)) << dim;
      }
    }
  }
}

}  // namespace
}  // namespace rowhouse::kernels
