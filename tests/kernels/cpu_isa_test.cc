/// The CPU backend's paths against the portable one, byte by byte, on random
/// rows with all kinds of values: the loops over rows of every dtype and width.

#include "kernels/cpu_isa.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

using Bytes = std::vector<std::byte>;

constexpr DType kDTypes[] = {DType::kBf16, DType::kFp32, DType::kFp16};
constexpr NonFinitePolicy kPolicies[] = {NonFinitePolicy::kPropagate,
                                         NonFinitePolicy::kSkipRow};

// Mostly common values; some of any bits, NaN, infinity and subnormals too.
Bytes RandomElements(Random& random, int64_t count, DType dtype) {
  Bytes bytes(static_cast<size_t>(count * SizeOf(dtype)));
  const double wild = random.Chance(0.5) ? 0.02 : 0;
  for (int64_t i = 0; i < count; ++i) {
    auto bits = static_cast<uint32_t>(random.Bits());
    if (!random.Chance(wild)) {
      const float x = random.Chance(0.1) ? -0.0F : random.Normal();
      bits = dtype == DType::kBf16   ? FloatToBf16(x)
             : dtype == DType::kFp16 ? FloatToFp16(x)
                                     : std::bit_cast<uint32_t>(x);
    }
    std::memcpy(bytes.data() + i * SizeOf(dtype), &bits,
                static_cast<size_t>(SizeOf(dtype)));
  }
  return bytes;
}

template <typename T>
std::vector<T> RandomIntegers(Random& random, int64_t count, T bound) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) {
    value = static_cast<T>(random.Integer(0, static_cast<int64_t>(bound) - 1));
  }
  return values;
}

template <typename T>
void Append(Bytes& bytes, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(value));
}

void Append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// What the operations of one test leave, on a backend.
using Work = std::function<Bytes(Backend& backend, Random& random)>;

class CpuIsaTest : public ::testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (!HasCpuIsa(GetParam())) {
      GTEST_SKIP() << "this CPU has no " << NameOf(GetParam());
    }
  }

  // Does the work with the same random values on this path and on the portable.
  static void ExpectSameBytes(uint64_t seed, const Work& work) {
    const auto bytes_of = [&](CpuIsa isa) {
      Random random(seed);
      return work(*cpu::MakeCpuBackend(cpu::MakeThreadExecutor(2, isa)),
                  random);
    };
    const Bytes expected = bytes_of(CpuIsa::kPortable);
    const Bytes actual = bytes_of(GetParam());
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(actual == expected) << Random(seed).Trace();
  }
};

INSTANTIATE_TEST_SUITE_P(Isas, CpuIsaTest,
                         ::testing::Values(CpuIsa::kAvx2, CpuIsa::kAvx512,
                                           CpuIsa::kAmx),
                         [](const auto& isa) { return NameOf(isa.param); });

// Widths below, at and beyond vectors, blocks and partial sums.
int64_t RandomDim(Random& random) {
  return random.Chance(0.5) ? random.Integer(1, 70) : random.Integer(250, 800);
}

// A table and an event of one part, with rows as `elements` makes them.
struct OnePartEvent {
  using Elements = Bytes (*)(Random&, int64_t rows, int64_t dim, DType dtype);

  OnePartEvent(Random& random, int64_t columns, int64_t rows, int64_t entries,
               Elements elements)
      : dtype(kDTypes[random.Integer(0, 1)]),
        gradient_dtype(kDTypes[random.Integer(0, 1)]),
        weights(elements(random, rows, columns, dtype)),
        states(static_cast<size_t>(rows), {0.25F, 0}),
        slots(RandomIntegers<int64_t>(random, entries, rows)),
        gradient(elements(random, entries, columns, gradient_dtype)),
        dim(columns) {
    event.parts = {&part, 1};
    event.gradient_dtype = gradient_dtype;
    event.policy = kPolicies[random.Integer(0, 1)];
    event.history = {&no_beta2, &no_beta2, 0};
  }

  RowTable table() {
    RowTable view;
    view.weights = weights.data();
    view.states = states.data();
    view.row_count = std::ssize(states);
    view.dim = dim;
    view.dtype = dtype;
    return view;
  }

  // Applies it; returns the table.
  Bytes Apply(Backend& backend) {
    EventReport report;
    EXPECT_TRUE(backend.ApplyRowAdamEvent(table(), event, report).ok());
    Bytes bytes = weights;
    for (const RowState& state : states) Append(bytes, state);
    Append(bytes, report.untouched_row_count);
    return bytes;
  }

  const DType dtype;
  const DType gradient_dtype;
  Bytes weights;
  std::vector<RowState> states;
  const std::vector<int64_t> slots;
  const Bytes gradient;
  const int64_t dim;
  const GradientPart part = {slots.data(), gradient.data(), std::ssize(slots)};
  const float no_beta2 = 0;
  RowAdamEvent event;
};

TEST_P(CpuIsaTest, RowAdamEvent) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ExpectSameBytes(seed, [](Backend& backend, Random& random) {
      OnePartEvent work(random, RandomDim(random), 60, random.Integer(1, 200),
                        [](Random& of, int64_t rows, int64_t dim, DType dtype) {
                          return RandomElements(of, rows * dim, dtype);
                        });
      work.event.factors =
          NarrowScalars(RowAdamScalars{0.1, 0.01, 0.95, 1e-10, 1.0}, 1);
      Bytes result = work.Apply(backend);
      GradientStatistics statistics;
      uint64_t digest = 0;
      EXPECT_TRUE(backend
                      .MergedStatistics(work.event.parts, work.dim,
                                        work.gradient_dtype, statistics)
                      .ok());
      EXPECT_TRUE(
          backend.Digest(work.table(), work.event.history, digest).ok());
      Append(result, statistics);
      Append(result, digest);
      return result;
    });
  }
}

// Each row in a range of its own, out to where values stop being finite or
// normal: what serves most rows must know which it does not.
Bytes RowsOfAllRanges(Random& random, int64_t rows, int64_t dim, DType dtype) {
  Bytes bytes;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t middle = random.Integer(-140, 128);
    const int64_t spread = random.Integer(0, 30);
    for (int64_t j = 0; j < dim; ++j) {
      const auto exponent =
          static_cast<int>(middle + random.Integer(-spread, spread));
      const float x = random.Chance(0.05)
                          ? 0.0F
                          : std::ldexp(random.Uniform(-2, 2), exponent);
      if (dtype == DType::kBf16) {
        Append(bytes, FloatToBf16(x));
      } else {
        Append(bytes, x);
      }
    }
  }
  return bytes;
}

double ScalarOfAnyRange(Random& random, int64_t most_exponent) {
  const auto exponent =
      static_cast<int>(random.Integer(-most_exponent, most_exponent));
  return std::ldexp(random.Chance(0.5) ? -1.25 : 1.25, exponent);
}

TEST_P(CpuIsaTest, RowAdamEventOfAllRanges) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    ExpectSameBytes(seed, [](Backend& backend, Random& random) {
      OnePartEvent work(random, random.Integer(1, 500), 40, 40,
                        RowsOfAllRanges);
      for (RowState& state : work.states) {
        state.second_moment =
            std::ldexp(1.0F, static_cast<int>(random.Integer(-149, 127)));
      }
      work.event.factors = NarrowScalars(
          RowAdamScalars{ScalarOfAnyRange(random, 100),
                         ScalarOfAnyRange(random, 20), 0.95,
                         random.Chance(0.5) ? 0 : 0x1p-40,
                         ScalarOfAnyRange(random, random.Chance(0.5) ? 1 : 60)},
          1);
      return work.Apply(backend);
    });
  }
}

TEST_P(CpuIsaTest, EmbeddingGradientAndAdamW) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ExpectSameBytes(seed, [](Backend& backend, Random& random) {
      const int64_t dim = RandomDim(random);
      const int64_t rows = 40;
      const DType dtype = kDTypes[random.Integer(0, 2)];
      const DType main_dtype = kDTypes[random.Integer(0, 2)];
      Bytes weights = RandomElements(random, rows * dim, dtype);
      Bytes main_grad = RandomElements(random, rows * dim, main_dtype);
      std::vector<float> moments(static_cast<size_t>(2 * rows * dim), 0.5F);
      const int64_t entries = random.Integer(1, 100);
      const auto slots = RandomIntegers<int64_t>(random, entries, rows);
      const Bytes gradient = RandomElements(random, entries * dim, dtype);
      EXPECT_TRUE(backend
                      .AccumulateEmbeddingGradient(
                          {main_grad.data(), main_dtype, rows, dim, dim},
                          {slots, gradient.data(), dtype, dim})
                      .ok());
      Bytes result = main_grad;
      DenseTable table;
      table.dtype = dtype;
      table.main_grad_dtype = main_dtype;
      table.row_count = rows;
      table.dim = dim;
      table.weights = weights.data();
      table.first_moment = moments.data();
      table.second_moment = moments.data() + rows * dim;
      table.main_grad = main_grad.data();
      EventReport report;
      GradientStatistics statistics;
      uint64_t digest = 0;
      EXPECT_TRUE(backend.DenseStatistics(table, statistics).ok());
      EXPECT_TRUE(
          backend
              .ApplyAdamW(table,
                          NarrowScalars(AdamWScalars{1e-3, 0.1, 0.9, 0.95, 1e-8,
                                                     0.1, 0.05, 1},
                                        1),
                          kPolicies[random.Integer(0, 1)], report)
              .ok());
      EXPECT_TRUE(backend.DenseDigest(table, digest).ok());
      Append(result, weights);
      for (const float moment : moments) Append(result, moment);
      Append(result, report.untouched_row_count);
      Append(result, statistics);
      Append(result, digest);
      return result;
    });
  }
}

TEST_P(CpuIsaTest, NgramEmbedding) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ExpectSameBytes(seed, [](Backend& backend, Random& random) {
      const int64_t dim = RandomDim(random);
      const int64_t rows = 30;
      const DType dtype = kDTypes[random.Integer(0, 1)];
      const DType wire_dtype = kDTypes[random.Integer(0, 1)];
      const int64_t count = random.Integer(1, 80);
      const auto tokens = RandomIntegers<int32_t>(random, count, 1000);
      const auto slots = RandomIntegers<int64_t>(random, 2 * count, rows);
      const Bytes cache = RandomElements(random, rows * dim, dtype);
      const Bytes gradient = RandomElements(random, count * dim, dtype);
      const SignPool pool = {random.Bits(), 64, nullptr};
      const auto row_bytes = static_cast<size_t>(dim * SizeOf(dtype));
      Bytes out(static_cast<size_t>(count) * row_bytes);
      Bytes row_gradient(2 * out.size());
      Bytes sums(static_cast<size_t>(rows * dim * SizeOf(wire_dtype)));
      const NgramStep step = {tokens, slots, gradient.data()};
      EXPECT_TRUE(backend
                      .NgramEmbedForward(cache.data(), dtype, dim, tokens,
                                         slots, pool, out.data())
                      .ok());
      EXPECT_TRUE(backend
                      .NgramEmbedBackward(gradient.data(), dtype, dim, tokens,
                                          pool, row_gradient.data())
                      .ok());
      EXPECT_TRUE(backend
                      .SumNgramGradients({&step, 1}, dtype, dim, pool, rows,
                                         wire_dtype, sums.data())
                      .ok());
      Append(out, row_gradient);
      Append(out, sums);
      return out;
    });
  }
}

TEST_P(CpuIsaTest, LandingAndInitialValues) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ExpectSameBytes(seed, [](Backend& backend, Random& random) {
      const int64_t dim = RandomDim(random);
      const int64_t rows = random.Integer(1, 50);
      const DType dtype = kDTypes[random.Integer(0, 2)];
      const Bytes from = RandomElements(random, rows * dim, dtype);
      Bytes to(from.size());
      ContentSum content;
      RowScan scan;
      EXPECT_TRUE(backend
                      .LandRows(from.data(), to.data(), rows, dim, dtype, 7,
                                content, scan)
                      .ok());
      EXPECT_EQ(to, from);
      Append(to, content);
      Append(to, scan);
      std::vector<RowState> states(static_cast<size_t>(rows));
      RowTable table;
      table.dtype = DType::kFp32;
      table.row_count = rows;
      table.dim = dim;
      table.states = states.data();
      Bytes weights(static_cast<size_t>(rows * table.row_bytes()));
      table.weights = weights.data();
      EXPECT_TRUE(backend
                      .InitializeRows(
                          table,
                          {Initializer::Kind::kUniform, random.Bits(), 0.1F},
                          false)
                      .ok());
      Append(to, weights);
      return to;
    });
  }
}

// Outputs of so many bytes may bypass the caches.
// Products are OpenBLAS's on all of these paths, or each a single term.
TEST_P(CpuIsaTest, Head) {
  if (GetParam() == CpuIsa::kAmx) GTEST_SKIP() << "amx has other products";
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    ExpectSameBytes(seed, [](Backend& backend, Random& random) {
      const int64_t dim = random.Integer(1, 20);
      const int64_t rows = random.Integer(1, 90);
      const int64_t tokens = random.Integer(1, 12);
      const DType dtype = kDTypes[random.Integer(0, 2)];
      const Bytes weights = RandomElements(random, rows * dim, dtype);
      const Bytes hidden = RandomElements(random, tokens * dim, dtype);
      const Bytes bias = RandomElements(random, rows, DType::kFp32);
      std::vector<int64_t> targets =
          RandomIntegers<int64_t>(random, tokens, rows);
      std::vector<float> statistics(static_cast<size_t>(4 * tokens), 0.0F);
      std::vector<int64_t> predicted(static_cast<size_t>(tokens));
      float* const max = statistics.data();
      const Bytes class_weights = RandomElements(random, rows, DType::kFp32);
      const auto perhaps = [&](const Bytes& values) {
        return random.Chance(0.7)
                   ? reinterpret_cast<const float*>(values.data())
                   : nullptr;
      };
      const HeadSlice slice = {weights.data(),
                               dtype,
                               perhaps(bias),
                               rows,
                               dim,
                               perhaps(class_weights),
                               random.Chance(0.5) ? 4.0F : 0.0F};
      const HeadInputs inputs = {hidden.data(), dtype, tokens, targets.data()};
      EXPECT_TRUE(backend
                      .HeadTokenStatistics(slice, inputs, {4, 16},
                                           {max, max + tokens, max + 2 * tokens,
                                            max + 3 * tokens, predicted.data()})
                      .ok());
      Bytes left;
      for (const float x : statistics) Append(left, x);
      for (const int64_t row : predicted) Append(left, row);
      return left;
    });
  }
}

TEST_P(CpuIsaTest, LargeGather) {
  for (const int64_t dim : {int64_t{768}, int64_t{770}}) {
    ExpectSameBytes(1, [dim](Backend& backend, Random& random) {
      const int64_t rows = 500;
      const int64_t count = 8000;
      Bytes weights = RandomElements(random, rows * dim, DType::kBf16);
      RowTable table;
      table.weights = weights.data();
      table.row_count = rows;
      table.dim = dim;
      const auto slots = RandomIntegers<int64_t>(random, count, rows);
      const int64_t row_bytes = table.row_bytes();
      const Buffer out = backend.Allocate(count * row_bytes).value();
      EXPECT_TRUE(backend.GatherRows(table, slots, out.data()).ok());
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_EQ(std::memcmp(out.as<std::byte>() + i * row_bytes,
                              weights.data() + slots[i] * row_bytes,
                              static_cast<size_t>(row_bytes)),
                  0)
            << "row " << i;
      }
      return Bytes(out.as<std::byte>(),
                   out.as<std::byte>() + count * row_bytes);
    });
  }
}

}  // namespace
}  // namespace rowhouse::kernels
