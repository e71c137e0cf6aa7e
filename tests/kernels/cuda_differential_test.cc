/// The CPU and the CUDA backend do the same random work: every bit is compared.

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/backend.h"
#include "tests/kernels/differential.h"
#include "tests/kernels/differential_case.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

class CudaDifferentialTest : public DifferentialTest {
 protected:
  void Compare(const DifferentialCase& work) {
    ExpectSameBits(RunCase(*cuda_, work), RunCase(*cpu_, work));
  }
};

TEST_F(CudaDifferentialTest, SmallCases) {
  Random random(1);
  SCOPED_TRACE(random.Trace());
  const int64_t count = CaseCount(10000);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t dim = kDims[random.Integer(0, std::size(kDims) - 1)];
    const int64_t most = std::clamp<int64_t>(60000 / dim, 6, 4000);
    const CaseSize size = {random.Integer(1, most), dim,
                           random.Chance(0.05) ? 0 : random.Integer(0, most)};
    const auto pattern = static_cast<SlotPattern>(random.Integer(0, 5));
    SCOPED_TRACE(::testing::Message()
                 << "case " << i << ": rows " << size.row_count << ", dim "
                 << dim << ", entries " << size.entry_count << ", pattern "
                 << static_cast<int>(pattern));
    Compare(MakeCase(random, size, pattern, /*specials=*/0.5));
    if (HasFailure()) return;
  }
}

// Parts in order, enough of them and of entries to be merged, not sorted.
TEST_F(CudaDifferentialTest, PartsThatAreMerged) {
  Random random(3);
  SCOPED_TRACE(random.Trace());
  const int64_t count = CaseCount(20);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t dim = i % 2 == 0 ? 8 : random.Integer(1, 40);
    const CaseSize size = {random.Integer(1, 100000), dim,
                           random.Integer(32769, 70000)};
    SCOPED_TRACE(::testing::Message() << "case " << i << ": dim " << dim);
    Compare(MakeCase(random, size, SlotPattern::kSortedParts,
                     /*specials=*/i % 4 == 0 ? 0.1 : 0.0));
    if (HasFailure()) return;
  }
}

TEST_F(CudaDifferentialTest, LargeCases) {
  Random random(2);
  SCOPED_TRACE(random.Trace());
  const int64_t count = CaseCount(24);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t dim = kDims[static_cast<size_t>(i) % std::size(kDims)];
    const int64_t entries = dim <= 768 ? 1000000 : dim == 1000 ? 500000 : 60000;
    const CaseSize size = {std::min<int64_t>(entries, 200000), dim, entries};
    const SlotPattern pattern = i < 8     ? SlotPattern::kUniform
                                : i < 16  ? SlotPattern::kZipf
                                : i == 16 ? SlotPattern::kOneSlot
                                : i < 20  ? SlotPattern::kRuns
                                          : SlotPattern::kSortedParts;
    SCOPED_TRACE(::testing::Message() << "case " << i << ": dim " << dim);
    Compare(MakeCase(random, size, pattern, /*specials=*/0.25));
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rowhouse::kernels
