/// Dense tables on the CPU and on CUDA: equal bits.

#include <algorithm>

#include "tests/kernels/differential.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

class DenseDifferentialTest : public DifferentialTest {
 protected:
  // One embedding gradient; with `odd` probability elements that are no usual
  // numbers.
  void EmbeddingGradient(Random& random, int64_t count, int64_t row_count,
                         int64_t dim, double odd) {
    const DType main_type = AnyDenseType(random);
    const DType type = AnyDenseType(random);
    const int64_t main_stride = dim + AnyOf(random, kPaddings);
    const int64_t stride = dim + AnyOf(random, kPaddings);
    const std::vector<int64_t> slots = RandomSlots(random, count, row_count);
    SCOPED_TRACE(::testing::Message()
                 << count << " entries of " << NameOf(type) << " into "
                 << row_count << " x " << dim << " " << NameOf(main_type)
                 << ", strides " << stride << " and " << main_stride);
    ExpectSame(
        {RandomElements(random, main_type, row_count * main_stride, odd),
         RandomElements(random, type, count * stride, odd), BytesOf(slots)},
        [&](const Arrays& arrays) {
          return arrays.backend().AccumulateEmbeddingGradient(
              {arrays.at(0), main_type, row_count, dim, main_stride},
              {{arrays.at<const int64_t>(2), slots.size()},
               arrays.at(1),
               type,
               stride});
        });
  }

  // A random table's arrays, in this order; those it has not are empty.
  enum Which : size_t {
    kWeights,
    kMaster,
    kFirstMoment,
    kSecondMoment,
    kMainGrad,
    kBias,
    kBiasGrad,
    kBiasFirstMoment,
    kBiasSecondMoment,
    kWhichCount,
  };
  struct RandomTable {
    DenseTable shape;  // Without pointers.
    std::vector<Bytes> arrays;

    DenseTable In(const Arrays& memory) const {
      DenseTable table = shape;
      table.weights = memory.at(kWeights);
      table.master = memory.at<float>(kMaster);
      table.first_moment = memory.at<float>(kFirstMoment);
      table.second_moment = memory.at<float>(kSecondMoment);
      table.main_grad = memory.at(kMainGrad);
      table.bias = memory.at<float>(kBias);
      table.bias_grad = memory.at<float>(kBiasGrad);
      table.bias_first_moment = memory.at<float>(kBiasFirstMoment);
      table.bias_second_moment = memory.at<float>(kBiasSecondMoment);
      return table;
    }
  };
  static RandomTable Table(Random& random, int64_t row_count, int64_t dim,
                           double odd) {
    RandomTable table;
    table.shape.row_count = row_count;
    table.shape.dim = dim;
    table.shape.first_row_id = random.Integer(0, int64_t{1} << 40);
    table.shape.dtype = AnyDenseType(random);
    table.shape.main_grad_dtype = AnyDenseType(random);
    const int64_t elements = row_count * dim;
    const bool has_master = random.Chance(0.5);
    const int64_t biases = random.Chance(0.5) ? row_count : 0;
    table.arrays.resize(kWhichCount);
    const auto fill = [&](Which which, DType dtype, int64_t count) {
      table.arrays[which] = RandomElements(random, dtype, count, odd);
    };
    fill(kWeights, table.shape.dtype, elements);
    fill(kMaster, DType::kFp32, has_master ? elements : 0);
    fill(kFirstMoment, DType::kFp32, elements);
    fill(kSecondMoment, DType::kFp32, elements);
    fill(kMainGrad, table.shape.main_grad_dtype, elements);
    fill(kBias, DType::kFp32, biases);
    fill(kBiasGrad, DType::kFp32, biases);
    fill(kBiasFirstMoment, DType::kFp32, biases);
    fill(kBiasSecondMoment, DType::kFp32, biases);
    // A second moment has no sign, but for what should not be there.
    for (const Which which : {kSecondMoment, kBiasSecondMoment}) {
      Bytes& bytes = table.arrays[which];
      for (size_t i = 3; i < bytes.size(); i += 4) {
        if (odd == 0 || random.Chance(1 - odd)) bytes[i] &= 0x7f;
      }
    }
    return table;
  }

  void AdamW(Random& random, int64_t row_count, int64_t dim, double odd) {
    const RandomTable table = Table(random, row_count, dim, odd);
    AdamWScalars scalars;
    scalars.learning_rate = random.Uniform(0, 0.1F);
    scalars.weight_decay = random.Uniform(0, 0.2F);
    scalars.beta1 = random.Uniform(0, 1);
    scalars.beta2 = random.Uniform(0, 1);
    scalars.eps = random.Chance(0.2) ? 0 : 1e-8;
    scalars.bias_correction1 = random.Uniform(0.1F, 1);
    scalars.bias_correction2 = random.Uniform(0.1F, 1);
    scalars.gradient_scale = random.Uniform(0, 2);
    const AdamWFactors factors = NarrowScalars(scalars, random.Integer(1, 8));
    const auto policy = static_cast<NonFinitePolicy>(random.Integer(1, 3));
    SCOPED_TRACE(::testing::Message()
                 << row_count << " x " << dim << " "
                 << NameOf(table.shape.dtype) << ", policy "
                 << static_cast<int>(policy));
    std::vector<EventReport> reports(2);
    size_t call = 0;
    ExpectSame(table.arrays, [&](const Arrays& arrays) {
      return arrays.backend().ApplyAdamW(table.In(arrays), factors, policy,
                                         reports[call++]);
    });
    EXPECT_EQ(reports[1].row_visits, reports[0].row_visits);
    EXPECT_EQ(reports[1].untouched_row_count, reports[0].untouched_row_count);
    EXPECT_EQ(reports[1].bytes_moved, reports[0].bytes_moved);
  }

  static constexpr int64_t kPaddings[] = {0, 8, 24, 3};
};

TEST_F(DenseDifferentialTest, SmallEmbeddingGradients) {
  Random random(71);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(5000); i < cases; ++i) {
    const int64_t dim =
        random.Chance(0.05) ? AnyOf(random, kDims) : random.Integer(1, 300);
    EmbeddingGradient(random, random.Integer(0, 150), random.Integer(1, 60),
                      dim, i % 2 == 0 ? 0 : 0.01);
    if (HasFatalFailure()) return;
  }
}

TEST_F(DenseDifferentialTest, LargeEmbeddingGradients) {
  Random random(72);
  SCOPED_TRACE(random.Trace());
  for (const int64_t dim : kDims) {
    for (const int64_t count : {5000, 8192, 40000}) {
      const int64_t most = dim > 1000 ? 8192 : count;
      EmbeddingGradient(random, std::min(count, most), 3000, dim, 0.0001);
      if (HasFatalFailure()) return;
    }
  }
  EmbeddingGradient(random, 1000000, 500000, 31, 0.0001);
}

TEST_F(DenseDifferentialTest, AdamWEvents) {
  Random random(73);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(1000); i < cases; ++i) {
    AdamW(random, random.Integer(0, 40), random.Integer(1, 200),
          i % 3 == 0 ? 0.0 : 0.002);
    if (HasFatalFailure()) return;
  }
  // One share of a row, all of one, and several.
  for (const int64_t dim : {768, 1000, 7168, 8192, 8193, 20000}) {
    for (int i = 0; i < 4; ++i) {
      AdamW(random, 30, dim, i % 2 == 0 ? 0.0 : 0.00003);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(DenseDifferentialTest, StatisticsAndDigests) {
  Random random(74);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(300); i < cases; ++i) {
    const int64_t dim = i < 16 ? kDims[i % 8] : random.Integer(1, 600);
    const RandomTable table =
        Table(random, random.Integer(0, 100), dim, i % 2 == 0 ? 0 : 0.001);
    std::vector<GradientStatistics> statistics(2);
    std::vector<uint64_t> digests(2);
    size_t call = 0;
    ExpectSame(table.arrays, [&](const Arrays& arrays) {
      const DenseTable view = table.In(arrays);
      absl::Status status =
          arrays.backend().DenseStatistics(view, statistics[call]);
      status.Update(arrays.backend().DenseDigest(view, digests[call]));
      ++call;
      return status;
    });
    if (HasFatalFailure()) return;
    EXPECT_EQ(digests[1], digests[0]);
    EXPECT_EQ(statistics[1].row_count, statistics[0].row_count);
    EXPECT_EQ(statistics[1].non_finite_row_count,
              statistics[0].non_finite_row_count);
    EXPECT_TRUE(std::equal(std::begin(statistics[1].significand_sums),
                           std::end(statistics[1].significand_sums),
                           std::begin(statistics[0].significand_sums)));
  }
}

TEST_F(DenseDifferentialTest, StartsAndWrittenRows) {
  Random random(75);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(200); i < cases; ++i) {
    const int64_t row_count = random.Integer(1, 40);
    RandomTable table = Table(random, row_count, random.Integer(1, 300), 0.01);
    const Initializer initializer = {random.Chance(0.5)
                                         ? Initializer::Kind::kUniform
                                         : Initializer::Kind::kZeros,
                                     random.Bits(), random.Uniform(0, 2)};
    const int64_t first = random.Integer(0, row_count - 1);
    const int64_t count = random.Integer(0, row_count - first);
    table.arrays.push_back(RandomElements(random, table.shape.dtype,
                                          count * table.shape.dim, 0.01));
    ExpectSame(table.arrays, [&](const Arrays& arrays) {
      Backend& backend = arrays.backend();
      const DenseTable view = table.In(arrays);
      absl::Status status;
      if (i % 4 > 0) status = backend.InitializeDense(view, initializer, false);
      if (i % 4 > 1) {
        status.Update(
            backend.WriteDenseRows(view, first, count, arrays.at(kWhichCount)));
      }
      if (i % 4 == 0) status = backend.ClearMainGrad(view);
      return status;
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace rowhouse::kernels
