#ifndef ROWHOUSE_TESTS_KERNELS_DIFFERENTIAL_H_
#define ROWHOUSE_TESTS_KERNELS_DIFFERENTIAL_H_

/// The same random call on two backends, whose results must have equal bits.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/element.h"
#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/require_gpu.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {

using Bytes = std::vector<uint8_t>;

/// The columns that differential tests draw from: below, at and beyond a warp,
/// a group of 256 and a block, multiples of 8 and not.
inline constexpr int64_t kDims[] = {1, 3, 31, 32, 96, 768, 1000, 7168};

/// Fewer cases than `usual` where ROWHOUSE_TEST_CASES says so: for tools that
/// slow a device down.
inline int64_t CaseCount(int64_t usual) {
  const char* text = std::getenv("ROWHOUSE_TEST_CASES");
  return text == nullptr ? usual : std::min<int64_t>(usual, std::atoll(text));
}

inline int64_t AnyOf(rowhouse::testing::Random& random,
                     std::span<const int64_t> values) {
  return values[static_cast<size_t>(
      random.Integer(0, static_cast<int64_t>(values.size()) - 1))];
}

inline DType AnyDenseType(rowhouse::testing::Random& random) {
  return static_cast<DType>(random.Integer(1, 3));
}

/// Elements of `dtype` as they lie in memory: normal numbers of some scales,
/// and with `odd` probability what is not: zeros of both signs, subnormal and
/// huge numbers, infinities and NaNs of any payload.
inline Bytes RandomElements(rowhouse::testing::Random& random, DType dtype,
                            int64_t count, double odd) {
  constexpr uint32_t kOdd[] = {0x00000000, 0x80000000, 0x00000001, 0x80012345,
                               0x007fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                               0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345};
  const auto size = static_cast<size_t>(SizeOf(dtype));
  Bytes bytes(static_cast<size_t>(count) * size);
  const float scale = std::ldexp(1.0F, static_cast<int>(random.Integer(-6, 6)));
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    // The bits of one draw: a value in (-4, 4) and which odd number.
    const uint64_t bits = random.Bits();
    float x = scale *
              (static_cast<float>(static_cast<int32_t>(bits >> 32)) * 0x1p-29F);
    if (odd > 0 && random.Chance(odd)) {
      x = std::bit_cast<float>(kOdd[bits % std::size(kOdd)]);
    }
    uint32_t element = std::bit_cast<uint32_t>(x);
    if (dtype == DType::kBf16)
      element = IsNan(x) ? element >> 16 | 1 : FloatToBf16(x);
    if (dtype == DType::kFp16) {
      // A quarter of the odd ones are subnormals of fp16.
      element = IsNan(x) ? 0x7c01U | (element >> 13 & 0x3ffU) : FloatToFp16(x);
      if (odd > 0 && random.Chance(odd / 4)) element = bits & 0x83ffU;
    }
    std::memcpy(bytes.data() + i * size, &element, size);
  }
  return bytes;
}

/// Slots in [0, row_count): spread evenly, by Zipf's law, all the same, or in
/// runs around the lengths at which the order of sums changes, mixed.
inline std::vector<int64_t> RandomSlots(rowhouse::testing::Random& random,
                                        int64_t count, int64_t row_count) {
  constexpr int64_t kLengths[] = {1,  2,  9,  10, 11, 20, 21,
                                  31, 32, 33, 63, 64, 65, 5000};
  std::vector<int64_t> slots;
  slots.reserve(static_cast<size_t>(count));
  const int64_t kind = random.Integer(0, 3);
  const int64_t same = random.Integer(0, row_count - 1);
  while (static_cast<int64_t>(slots.size()) < count) {
    const double u = random.Uniform(0, 1);
    if (kind == 0) {
      slots.push_back(random.Integer(0, row_count - 1));
    } else if (kind == 1) {
      const auto rank =
          static_cast<int64_t>(std::pow(static_cast<double>(row_count), u));
      slots.push_back(std::min(rank, row_count) - 1);
    } else if (kind == 2) {
      slots.push_back(same);
    } else {
      const int64_t left = count - static_cast<int64_t>(slots.size());
      slots.insert(slots.end(),
                   static_cast<size_t>(std::min(left, AnyOf(random, kLengths))),
                   random.Integer(0, row_count - 1));
    }
  }
  if (kind == 3 && random.Chance(0.5)) {
    std::shuffle(slots.begin(), slots.end(), random.engine());
  }
  return slots;
}

/// Runs calls on the CPU backend and on CUDA device 0; without one, skips.
class DifferentialTest : public ::testing::Test {
 protected:
  /// Arrays a call reads and writes, in one backend's memory, by index.
  class Arrays {
   public:
    Arrays(Backend& backend, const std::vector<Bytes>& bytes)
        : backend_(backend) {
      for (const Bytes& array : bytes) arrays_.emplace_back(backend, array);
    }
    Backend& backend() const { return backend_; }
    template <typename T = void>
    T* at(size_t i) const {
      return reinterpret_cast<T*>(arrays_[i].data());
    }
    Bytes Download(size_t i) const { return arrays_[i].Download(); }

   private:
    Backend& backend_;
    std::vector<BackendArray<uint8_t>> arrays_;
  };

  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Backend>> made =
        MakeBackend({BackendKind::kCuda});
    if (MayLackGpu(made.status())) GTEST_SKIP() << made.status();
    ASSERT_THAT(made, IsOk());
    cuda_ = *std::move(made);
    cpu_ = MakeBackend({}).value();
  }

  /// Calls `operation` with `arrays` on both backends; afterwards all of them
  /// must have equal bytes.
  void ExpectSame(
      const std::vector<Bytes>& arrays,
      const std::function<absl::Status(const Arrays& arrays)>& operation) {
    const Arrays want(*cpu_, arrays);
    const Arrays got(*cuda_, arrays);
    ASSERT_THAT(operation(want), IsOk());
    ASSERT_THAT(operation(got), IsOk());
    ASSERT_THAT(cpu_->Synchronize(), IsOk());
    ASSERT_THAT(cuda_->Synchronize(), IsOk());
    for (size_t i = 0; i < arrays.size(); ++i) {
      // Not EXPECT_EQ: that would print the arrays.
      ASSERT_TRUE(got.Download(i) == want.Download(i)) << "array " << i;
    }
  }

  /// The bytes of some values, as an array.
  template <typename T>
  static Bytes BytesOf(const std::vector<T>& values) {
    Bytes bytes(values.size() * sizeof(T));
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    return bytes;
  }

  std::unique_ptr<Backend> cpu_;
  std::unique_ptr<Backend> cuda_;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_DIFFERENTIAL_H_
