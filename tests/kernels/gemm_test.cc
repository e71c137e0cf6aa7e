#include "kernels/cpu/gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/buffer.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu_isa.h"
#include "kernels/dtype.h"
#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace {

thread_local int64_t allocation_count = 0;

void* Allocate(size_t size, size_t alignment) {
  ++allocation_count;
  const size_t whole = (size + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// This program's allocations are counted.
void* operator new(size_t size) { return Allocate(size, 16); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace rowhouse::kernels::cpu {
namespace {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::Random;

// A matrix in memory, with elements beside it that are not its own.
struct Matrix {
  std::vector<float> data;
  int64_t stride = 0;
  DType dtype = DType::kFp32;
  bool transposed = false;

  Operand operand() const { return {data.data(), stride, dtype, transposed}; }
  double at(int64_t i, int64_t j) const {
    return data[static_cast<size_t>(transposed ? j * stride + i
                                               : i * stride + j)];
  }
};

Matrix RandomMatrix(Random& random, int64_t rows, int64_t columns,
                    DType dtype) {
  Matrix matrix;
  matrix.dtype = dtype;
  matrix.transposed = random.Chance(0.5);
  if (matrix.transposed) std::swap(rows, columns);
  matrix.stride = columns + random.Integer(0, 3);
  matrix.data.resize(static_cast<size_t>(rows * matrix.stride));
  for (float& x : matrix.data) x = random.Normal();
  matrix.data = Representable(dtype, matrix.data);
  return matrix;
}

struct Product {
  Matrix a;
  Matrix b;
  ProductShape shape;
  Into into = Into::kWrite;
  std::vector<float> out;  // Before.
  int64_t stride = 0;
};

Product RandomProduct(Random& random, const ProductShape& shape) {
  constexpr DType kTypes[] = {DType::kFp32, DType::kBf16, DType::kFp16};
  Product product;
  product.shape = shape;
  product.a =
      RandomMatrix(random, shape.m, shape.k, kTypes[random.Integer(0, 2)]);
  product.b =
      RandomMatrix(random, shape.k, shape.n, kTypes[random.Integer(0, 2)]);
  product.into = random.Chance(0.5) ? Into::kAdd : Into::kWrite;
  product.stride = shape.n + random.Integer(0, 5);
  product.out.resize(static_cast<size_t>(shape.m * product.stride));
  for (float& x : product.out) x = random.Normal();
  return product;
}

Buffer ScratchOf(CpuIsa isa) {
  absl::StatusOr<Buffer> scratch =
      AllocateMemory(MultiplyScratchFloats(isa) * int64_t{sizeof(float)});
  EXPECT_THAT(scratch, IsOk());
  return *std::move(scratch);
}

std::vector<float> Multiplied(CpuIsa isa, const Product& product) {
  const Buffer scratch = ScratchOf(isa);
  std::vector<float> out = product.out;
  Multiply(isa, product.a.operand(), product.b.operand(), product.shape,
           product.into, out.data(), product.stride, scratch.as<float>());
  return out;
}

// Every element errs by less than this times the sum of its terms' absolute
// values: fp32 sums whose roundings are independent; 8 for what parts of three
// bf16 numbers leave out, less than 2^-21.
double ErrorOf(int64_t k) {
  return (4 * std::sqrt(static_cast<double>(k + 1)) + 8) * 0x1p-24;
}

void ExpectParity(const Product& product, const std::vector<float>& got) {
  const auto [m, n, k] = product.shape;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < product.stride; ++j) {
      const auto at = static_cast<size_t>(i * product.stride + j);
      const double before = product.out[at];
      if (j >= n) {
        ASSERT_EQ(got[at], before) << "beside the result";
        continue;
      }
      double want = product.into == Into::kAdd ? before : 0;
      double terms = std::abs(want);
      for (int64_t l = 0; l < k; ++l) {
        const double term = product.a.at(i, l) * product.b.at(l, j);
        want += term;
        terms += std::abs(term);
      }
      ASSERT_LE(std::abs(got[at] - want), ErrorOf(k) * terms)
          << "element " << i << ", " << j << " of [" << m << ", " << k
          << "] x [" << k << ", " << n << "]: " << got[at] << ", not " << want;
    }
  }
}

std::string NameOfIsa(const ::testing::TestParamInfo<CpuIsa>& tested) {
  return NameOf(tested.param);
}

class GemmTest : public ::testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (!HasCpuIsa(GetParam())) {
      GTEST_SKIP() << "this CPU does not run " << NameOf(GetParam());
    }
  }
};

TEST_P(GemmTest, EqualsAnFp64OracleWithinItsRoundings) {
  Random random(91);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < 60; ++i) {
    const Product product =
        RandomProduct(random, {random.Integer(1, 70), random.Integer(1, 70),
                               random.Integer(0, 1) * random.Integer(1, 90)});
    ExpectParity(product, Multiplied(GetParam(), product));
  }
}

// Beyond each block size.
TEST_P(GemmTest, EqualsAnFp64OracleInSeveralBlocks) {
  Random random(92);
  SCOPED_TRACE(random.Trace());
  for (const ProductShape& shape :
       {ProductShape{150, 40, 700}, ProductShape{3, 1100, 40},
        ProductShape{129, 1025, 33}, ProductShape{32, 32, 513}}) {
    const Product product = RandomProduct(random, shape);
    ExpectParity(product, Multiplied(GetParam(), product));
  }
}

TEST_P(GemmTest, WithoutTermsWritesZerosOrNothing) {
  Random random(93);
  SCOPED_TRACE(random.Trace());
  Product product = RandomProduct(random, {5, 7, 0});
  product.into = Into::kWrite;
  ExpectParity(product, Multiplied(GetParam(), product));
  product.into = Into::kAdd;
  EXPECT_EQ(Multiplied(GetParam(), product), product.out);
}

TEST_P(GemmTest, RepeatsItsBitsOnAnyThread) {
  Random random(94);
  SCOPED_TRACE(random.Trace());
  const Product product = RandomProduct(random, {60, 150, 300});
  const std::vector<float> once = Multiplied(GetParam(), product);
  std::vector<float> other;
  std::thread([&] { other = Multiplied(GetParam(), product); }).join();
  EXPECT_EQ(BitsOf(other), BitsOf(once));
}

TEST_P(GemmTest, OneNanSpoilsItsOwnRowOnly) {
  Random random(95);
  SCOPED_TRACE(random.Trace());
  Product product = RandomProduct(random, {40, 20, 50});
  product.a = RandomMatrix(random, 40, 50, DType::kFp32);
  product.a.transposed = false;
  product.a.stride = 50;
  product.a.data.assign(40 * 50, 1.0F);
  product.a.data[7 * 50 + 3] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> got = Multiplied(GetParam(), product);
  for (int64_t i = 0; i < 40; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      EXPECT_EQ(std::isnan(got[static_cast<size_t>(i * product.stride + j)]),
                i == 7);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, GemmTest,
                         ::testing::Values(CpuIsa::kPortable, CpuIsa::kAmx),
                         NameOfIsa);

class AmxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCpuIsa(CpuIsa::kAmx)) GTEST_SKIP() << "this CPU does not run amx";
  }
};

TEST_F(AmxTest, AllocatesNothing) {
  Random random(97);
  SCOPED_TRACE(random.Trace());
  const Product product = RandomProduct(random, {40, 50, 60});
  std::vector<float> out = product.out;
  int64_t count = -1;
  // A thread that has multiplied nothing before.
  std::thread([&] {
    const Buffer scratch = ScratchOf(CpuIsa::kAmx);
    const int64_t before = allocation_count;
    Multiply(CpuIsa::kAmx, product.a.operand(), product.b.operand(),
             product.shape, product.into, out.data(), product.stride,
             scratch.as<float>());
    count = allocation_count - before;
  }).join();
  EXPECT_EQ(count, 0);
}

TEST_F(AmxTest, WhatIsInItsScratchDoesNotMatter) {
  Random random(98);
  SCOPED_TRACE(random.Trace());
  const Product product = RandomProduct(random, {33, 47, 70});
  const Buffer scratch = ScratchOf(CpuIsa::kAmx);
  std::memset(scratch.data(), 0xff, static_cast<size_t>(scratch.size_bytes()));
  std::vector<float> out = product.out;
  Multiply(CpuIsa::kAmx, product.a.operand(), product.b.operand(),
           product.shape, product.into, out.data(), product.stride,
           scratch.as<float>());
  EXPECT_EQ(BitsOf(out), BitsOf(Multiplied(CpuIsa::kAmx, product)));
}

TEST_F(AmxTest, AnElementDoesNotDependOnItsPlace) {
  Random random(96);
  SCOPED_TRACE(random.Trace());
  const Product whole = RandomProduct(random, {75, 83, 200});
  const std::vector<float> all = Multiplied(CpuIsa::kAmx, whole);
  for (int64_t i = 0; i < 75; i += 7) {
    for (int64_t j = 0; j < 83; j += 9) {
      Product one = whole;
      one.shape = {1, 1, 200};
      const auto skip = [](Matrix& matrix, int64_t row, int64_t column) {
        const int64_t at = matrix.transposed ? column * matrix.stride + row
                                             : row * matrix.stride + column;
        matrix.data.erase(matrix.data.begin(), matrix.data.begin() + at);
      };
      skip(one.a, i, 0);
      skip(one.b, 0, j);
      const auto at = static_cast<size_t>(i * whole.stride + j);
      one.out = {whole.out[at]};
      one.stride = 1;
      EXPECT_EQ(Multiplied(CpuIsa::kAmx, one)[0], all[at]);
    }
  }
}

float MultiplyOne(float a, float b, DType dtype) {
  const Buffer scratch = ScratchOf(CpuIsa::kAmx);
  float out = 0;
  Multiply(CpuIsa::kAmx, {&a, 1, dtype}, {&b, 1, dtype}, {1, 1, 1},
           Into::kWrite, &out, 1, scratch.as<float>());
  return out;
}

TEST_F(AmxTest, ProductsOfNumbersWithFewBitsAreExact) {
  EXPECT_EQ(MultiplyOne(1.5F, -2.25F, DType::kBf16), -3.375F);
  EXPECT_EQ(MultiplyOne(65504.0F, 65504.0F, DType::kFp16), 65504.0F * 65504.0F);
  EXPECT_EQ(MultiplyOne(4097.0F, 4095.0F, DType::kFp32), 4097.0F * 4095.0F);
}

TEST_F(AmxTest, LeavesOutTheLeastPartsOfAProduct) {
  const auto worst = std::bit_cast<float>(0x3f80ffffU);
  const double exact = double{worst} * worst;
  const double got = MultiplyOne(worst, worst, DType::kFp32);
  EXPECT_LT(got, exact);
  EXPECT_GT(got, exact * (1 - 0x1p-21));
}

TEST_F(AmxTest, SubnormalNumbersCountAsZero) {
  EXPECT_EQ(MultiplyOne(0x1p-130F, 0x1p100F, DType::kFp32), 0.0F);
  EXPECT_EQ(MultiplyOne(0x1p-126F, 0x1p100F, DType::kFp32), 0x1p-26F);
}

TEST_F(AmxTest, InfinityStaysForBf16AndIsNanForOthers) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(MultiplyOne(infinity, 2.0F, DType::kBf16), infinity);
  EXPECT_TRUE(std::isnan(MultiplyOne(infinity, 2.0F, DType::kFp32)));
  const float large = std::numeric_limits<float>::max();
  EXPECT_EQ(MultiplyOne(large, 1.0F, DType::kFp32), large);
}

}  // namespace
}  // namespace rowhouse::kernels::cpu
