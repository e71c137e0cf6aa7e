// Promise P1 for dense tables: parts are folded in the order (part, rank),
// whatever the order in which they come. Embedding parts against the oracle of
// tests/reference/dense_table.h, for any shards; head parts on fixed slices
// against the same parts sent one by one in canonical order.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/reference/dense_table.h"
#include "tests/server/same_bits/dense_shards.h"
#include "tests/server/same_bits/scenario.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using kernels::DType;
using Eager = reference::EagerDense;

int Cases(int quick, int all) {
  return std::getenv("ROWHOUSE_ALL_SEEDS") == nullptr ? quick : all;
}

Eager::Type TypeOf(DType dtype) {
  return dtype == DType::kFp32 ? Eager::Type::kFp32 : Eager::Type::kBf16;
}

DType AnyType(Random& random) {
  return random.Chance(0.5) ? DType::kFp32 : DType::kBf16;
}

std::vector<float> FromBytes(const std::string& bytes, DType dtype) {
  std::vector<float> values(bytes.size() / kernels::SizeOf(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    if (dtype == DType::kFp32) {
      std::memcpy(&bits, bytes.data() + 4 * i, 4);
    } else {
      std::memcpy(reinterpret_cast<char*>(&bits) + 2, bytes.data() + 2 * i, 2);
    }
    std::memcpy(&values[i], &bits, 4);
  }
  return values;
}

kernels::AdamWScalars ScalarsOf(int event) {
  kernels::AdamWScalars scalars;
  scalars.learning_rate = 0.01;
  scalars.weight_decay = 0.1;
  scalars.beta1 = 0.9;
  scalars.beta2 = 0.95;
  scalars.eps = 1e-8;
  scalars.bias_correction1 = 1 - std::pow(0.9, event);
  scalars.bias_correction2 = 1 - std::pow(0.95, event);
  scalars.gradient_scale = 0.5;
  return scalars;
}

server::ShardSpec RandomSpec(Random& random, int64_t row_count, int64_t dim) {
  server::ShardSpec spec{.table = "tables/t",
                         .placement = wire::Placement::Even(row_count, 1),
                         .initializer = {}};
  spec.dim = dim;
  spec.row_dtype = AnyType(random);
  spec.gradient_dtype = AnyType(random);
  spec.initializer = {kernels::Initializer::Kind::kUniform, random.Bits(),
                      0.5F};
  spec.reduction = random.Chance(0.5) ? server::GradientReduction::kMean
                                      : server::GradientReduction::kSum;
  spec.trainer_count = static_cast<int32_t>(random.Integer(1, 4));
  spec.max_contribution_row_count = 1000;
  spec.max_part_count = 4;
  spec.dense = server::DenseSpec{.main_grad_dtype = AnyType(random),
                                 .has_master = random.Chance(0.5),
                                 .has_bias = random.Chance(0.5),
                                 .max_head_token_count = 1000};
  return spec;
}

DensePart RandomRows(Random& random, const server::ShardSpec& spec) {
  DensePart part;
  std::vector<float> values;
  const int64_t count = random.Integer(0, 30);
  for (int64_t i = 0; i < count; ++i) {
    part.row_ids.push_back(random.Integer(0, spec.placement.row_count() - 1));
    for (int64_t j = 0; j < spec.dim; ++j) values.push_back(random.Normal());
  }
  part.bytes = ToBytes(values, spec.gradient_dtype);
  return part;
}

DensePart RandomTokens(Random& random, const server::ShardSpec& spec) {
  DensePart part;
  part.head = true;
  part.hidden_dtype = AnyType(random);
  std::vector<float> values;
  const int64_t count = random.Integer(0, 12);
  for (int64_t t = 0; t < count; ++t) {
    const bool ignored = random.Chance(0.2);
    part.row_ids.push_back(
        ignored ? -100 : random.Integer(0, spec.placement.row_count() - 1));
    part.upstream.push_back(ignored ? 0.0F : random.Normal());
    for (int64_t j = 0; j < spec.dim; ++j) values.push_back(random.Normal());
  }
  part.bytes = ToBytes(values, part.hidden_dtype);
  return part;
}

// The parts of one event, by (part, rank): the canonical order.
std::vector<DensePart> RandomParts(Random& random,
                                   const server::ShardSpec& spec,
                                   double head_share) {
  std::vector<DensePart> parts;
  for (int32_t rank = 0; rank < spec.trainer_count; ++rank) {
    const auto count = static_cast<int32_t>(random.Integer(0, 3));
    for (int32_t number = 0; number < count; ++number) {
      DensePart part = random.Chance(head_share) ? RandomTokens(random, spec)
                                                 : RandomRows(random, spec);
      part.rank = rank;
      part.part = number;
      parts.push_back(std::move(part));
    }
  }
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const DensePart& a, const DensePart& b) { return a.part < b.part; });
  return parts;
}

void SealAll(DenseShards& table, int64_t event, int32_t trainer_count,
             const std::vector<DensePart>& parts) {
  for (int32_t rank = 0; rank < trainer_count; ++rank) {
    const auto count =
        std::count_if(parts.begin(), parts.end(),
                      [&](const DensePart& part) { return part.rank == rank; });
    ASSERT_THAT(table.Seal(event, rank, static_cast<int32_t>(count)), IsOk());
  }
}

Eager MakeOracle(const server::ShardSpec& spec, const std::string& rows) {
  Eager oracle;
  oracle.row_count = spec.placement.row_count();
  oracle.dim = spec.dim;
  oracle.type = TypeOf(spec.row_dtype);
  oracle.main_type = TypeOf(spec.dense->main_grad_dtype);
  oracle.has_master = spec.dense->has_master;
  oracle.has_bias = spec.dense->has_bias;
  oracle.weights = FromBytes(rows, spec.row_dtype);
  const std::vector<float> zeros(oracle.weights.size());
  const std::vector<float> row_zeros(
      oracle.has_bias ? static_cast<size_t>(oracle.row_count) : 0);
  oracle.m = oracle.v = oracle.main_grad = zeros;
  oracle.bias = oracle.bias_grad = oracle.bias_m = oracle.bias_v = row_zeros;
  return oracle;
}

// A master begins unrounded, so the oracle's is computed from the definition.
void SetMaster(const server::ShardSpec& spec, Eager& oracle) {
  if (!oracle.has_master) return;
  oracle.master.clear();
  for (int64_t i = 0; i < oracle.row_count; ++i) {
    for (int64_t j = 0; j < oracle.dim; ++j) {
      oracle.master.push_back(kernels::UniformInitial(
          spec.initializer.seed, spec.initializer.bound, i, j));
    }
  }
}

void ExpectOracleBits(server::ShardSpec spec, int32_t shards, int threads,
                      const std::vector<std::vector<DensePart>>& events,
                      Random& random) {
  spec.placement = wire::Placement::Even(spec.placement.row_count(), shards);
  auto created = DenseShards::Create(spec, threads);
  ASSERT_THAT(created, IsOk());
  DenseShards& table = **created;
  Eager oracle = MakeOracle(spec, *table.Rows());
  SetMaster(spec, oracle);
  const int divisor = spec.reduction == server::GradientReduction::kMean
                          ? spec.trainer_count
                          : 1;
  int number = 0;
  for (const std::vector<DensePart>& parts : events) {
    ++number;
    std::vector<DensePart> arriving = parts;
    std::shuffle(arriving.begin(), arriving.end(), random.engine());
    for (const DensePart& part : arriving) {
      ASSERT_THAT(table.Contribute(number, part, random.Integer(1, 9)), IsOk());
      if (!random.Chance(0.2)) continue;
      ASSERT_THAT(table.Contribute(number, part, random.Integer(1, 9)), IsOk());
    }
    ASSERT_NO_FATAL_FAILURE(
        SealAll(table, number, spec.trainer_count, arriving));
    ASSERT_THAT(table.Commit(number, ScalarsOf(number)), IsOk());
    for (const DensePart& part : parts) {
      oracle.AddEmbeddingGradient(part.row_ids,
                                  FromBytes(part.bytes, spec.gradient_dtype),
                                  TypeOf(spec.gradient_dtype));
    }
    oracle.ApplyAdamW({0.01, 0.1, 0.9, 0.95, 1e-8, number, 0.5}, divisor, true);
    const auto sum = table.RowSum(number);
    ASSERT_THAT(sum, IsOk());
    ASSERT_EQ(*sum, oracle.Digest()) << "after event " << number;
  }
}

TEST(DenseSameBits, EmbeddingPartsGiveTheOraclesBits) {
  Random random(20261201);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < Cases(25, 600); ++i) {
    const server::ShardSpec spec =
        RandomSpec(random, random.Integer(1, 20), random.Integer(1, 9));
    std::vector<std::vector<DensePart>> events;
    for (int e = 0; e < 4; ++e) {
      events.push_back(RandomParts(random, spec, /*head_share=*/0));
    }
    for (const int32_t shards : {1, 2, 3, 5}) {
      for (const int threads : {1, 2, 8}) {
        SCOPED_TRACE(::testing::Message() << "case " << i << ", " << shards
                                          << " shards, " << threads);
        ASSERT_NO_FATAL_FAILURE(
            ExpectOracleBits(spec, shards, threads, events, random));
      }
    }
  }
}

// How parts are sent to a table.
struct Sending {
  bool shuffled = false;
  bool repeats = false;
  bool replaced_trainers = false;  // Die unsealed after some parts, once.
  int threads = 1;
};

void SendEvent(DenseShards& table, const server::ShardSpec& spec, int event,
               std::vector<DensePart> parts, const Sending& sending,
               Random& random) {
  if (sending.shuffled) {
    std::shuffle(parts.begin(), parts.end(), random.engine());
  }
  if (sending.replaced_trainers) {
    const auto rank =
        static_cast<int32_t>(random.Integer(0, spec.trainer_count - 1));
    const auto sent = random.Integer(0, static_cast<int64_t>(parts.size()));
    for (int64_t i = 0; i < sent; ++i) {
      ASSERT_THAT(table.Contribute(event, parts[i]), IsOk());
    }
    // What the older life sent is gone; the others' parts are known.
    ASSERT_THAT(table.OpenSession(rank, event + 1), IsOk());
  }
  for (const DensePart& part : parts) {
    ASSERT_THAT(table.Contribute(event, part, random.Integer(1, 5)), IsOk());
    if (!sending.repeats || !random.Chance(0.3)) continue;
    ASSERT_THAT(table.Contribute(event, part, random.Integer(1, 5)), IsOk());
  }
  ASSERT_NO_FATAL_FAILURE(SealAll(table, event, spec.trainer_count, parts));
  ASSERT_THAT(table.Commit(event, ScalarsOf(event)), IsOk());
}

std::vector<uint64_t> SumsOf(const server::ShardSpec& spec,
                             const std::vector<std::vector<DensePart>>& events,
                             const Sending& sending, Random& random) {
  std::vector<uint64_t> sums;
  auto created = DenseShards::Create(spec, sending.threads, {5, 4});
  EXPECT_THAT(created, IsOk());
  if (!created.ok()) return sums;
  for (size_t i = 0; i < events.size(); ++i) {
    const int event = static_cast<int>(i) + 1;
    SendEvent(**created, spec, event, events[i], sending, random);
    if (::testing::Test::HasFatalFailure()) return sums;
    const auto sum = (*created)->RowSum(event);
    EXPECT_THAT(sum, IsOk());
    sums.push_back(sum.value_or(0));
  }
  return sums;
}

TEST(DenseSameBits, HeadAndEmbeddingPartsFoldInCanonicalOrder) {
  Random random(20261202);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < Cases(25, 600); ++i) {
    SCOPED_TRACE(::testing::Message() << "case " << i);
    const int64_t rows = random.Integer(2, 20);
    server::ShardSpec spec = RandomSpec(random, rows, random.Integer(1, 9));
    const int64_t cut = random.Integer(0, rows);
    spec.placement =
        *wire::Placement::Explicit(rows, std::vector<int64_t>{0, cut, rows});
    std::vector<std::vector<DensePart>> events;
    for (int e = 0; e < 3; ++e) {
      events.push_back(RandomParts(random, spec, /*head_share=*/0.6));
    }
    const std::vector<uint64_t> want = SumsOf(spec, events, {}, random);
    ASSERT_FALSE(HasFailure());
    const Sending kinds[] = {
        {.shuffled = true},
        {.shuffled = true, .repeats = true, .threads = 2},
        {.shuffled = true, .replaced_trainers = true, .threads = 8}};
    for (const Sending& sending : kinds) {
      ASSERT_EQ(SumsOf(spec, events, sending, random), want);
    }
  }
}

// Guards the test above: another order of the parts shows in the bits.
TEST(DenseSameBits, AnotherOrderOfPartsWouldShow) {
  Random random(20261203);
  SCOPED_TRACE(random.Trace());
  server::ShardSpec spec = RandomSpec(random, 12, 8);
  spec.trainer_count = 3;
  spec.gradient_dtype = DType::kFp32;
  spec.row_dtype = DType::kFp32;
  spec.dense->main_grad_dtype = DType::kFp32;
  std::vector<DensePart> parts;
  std::vector<DensePart> swapped;
  for (int32_t rank = 0; rank < 3; ++rank) {
    DensePart part = RandomTokens(random, spec);
    while (part.row_ids.size() < 5) part = RandomTokens(random, spec);
    part.rank = rank;
    parts.push_back(part);
    part.rank = 2 - rank;
    swapped.push_back(part);
  }
  const auto one = SumsOf(spec, {parts}, {}, random);
  const auto other = SumsOf(spec, {swapped}, {}, random);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace rowhouse::testing
