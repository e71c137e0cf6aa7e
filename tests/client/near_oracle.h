#ifndef ROWHOUSE_TESTS_CLIENT_NEAR_ORACLE_H_
#define ROWHOUSE_TESTS_CLIENT_NEAR_ORACLE_H_

/// What tests of losses against the fp64 oracle share.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/dtype.h"

namespace rowhouse::client {

/// How tokens' losses become one.
enum class Way : uint8_t { kNone, kSum, kMeanOfOwn, kMeanOfStated };

/// What `kMeanOfStated` divides by.
inline constexpr int64_t kStatedCount = 29;

/// What rounding to `dtype` loses at most, as a share.
inline double HalfLastPlace(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::kBf16:
      return 0x1p-9;
    case kernels::DType::kFp16:
      return 0x1p-12;
    case kernels::DType::kFp32:
      return 0x1p-24;
  }
  return 0;
}

/// Expects `got` to differ from `want` by no more than `tolerance` times the
/// largest of `want`.
template <typename Got>
void ExpectNear(const Got& got, const std::vector<double>& want,
                double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const double x : want) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * largest) << what << " " << i;
  }
}

}  // namespace rowhouse::client

#endif  // ROWHOUSE_TESTS_CLIENT_NEAR_ORACLE_H_
