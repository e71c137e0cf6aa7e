#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

// Any bits, numbers and others.
std::vector<float> AnyFloats(Random& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) {
    x = random.Chance(0.5)
            ? random.Normal()
            : std::bit_cast<float>(static_cast<uint32_t>(random.Bits()));
  }
  return values;
}

TEST_P(BackendTest, FloatsAreAddedOnceEach) {
  Random random(61);
  SCOPED_TRACE(random.Trace());
  for (const int64_t count : {0, 1, 1023, 300000}) {
    std::vector<float> from(static_cast<size_t>(count));
    std::vector<float> to(static_cast<size_t>(count));
    std::vector<float> wanted(static_cast<size_t>(count));
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] = random.Normal();
      to[i] = random.Chance(0.1) ? -0.0F : random.Normal() * 1e6F;
      wanted[i] = to[i] + from[i];
    }
    const auto device_from = Array(from);
    const auto device_to = Array(to);
    ASSERT_THAT(
        backend_->AddFloats(device_from.data(), device_to.data(), count),
        IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(BitsOf(device_to.Download()), BitsOf(wanted)) << count;
  }
}

TEST_P(BackendTest, FloatsAreNarrowedOnceToNearestEven) {
  Random random(62);
  SCOPED_TRACE(random.Trace());
  for (const DType dtype : {DType::kBf16, DType::kFp16, DType::kFp32}) {
    for (const int64_t count : {0, 1, 1023, 300000}) {
      const std::vector<float> from = AnyFloats(random, count);
      const auto device_from = Array(from);
      auto to = Array(Encode(dtype, from));
      to.Upload(std::vector<uint8_t>(to.span().size(), 9));
      ASSERT_THAT(
          backend_->NarrowFloats(device_from.data(), count, dtype, to.data()),
          IsOk());
      ASSERT_THAT(backend_->Synchronize(), IsOk());
      EXPECT_TRUE(to.Download() == Encode(dtype, from)) << count;
    }
  }
}

}  // namespace
}  // namespace rowhouse::kernels
