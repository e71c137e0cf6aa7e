#include "kernels/openblas.h"

#include <cblas.h>

#include <string>

#include "gmock/gmock.h"

namespace rowhouse::kernels {
namespace {

using ::testing::HasSubstr;

TEST(OpenBlasAdviceTest, HasNothingToSayOfTiles) {
  EXPECT_EQ(OpenBlasAdvice(CpuIsa::kAmx), std::nullopt);
}

// ctest runs this once more with OPENBLAS_CORETYPE=Prescott.
TEST(OpenBlasAdviceTest, NamesWhatToSetWhereOpenBlasTakesANewCpuForAnOldOne) {
  const auto advice = OpenBlasAdvice(CpuIsa::kPortable);
  const bool slow = std::string(openblas_get_corename()) == "Prescott";
  if (!slow || !HasCpuIsa(CpuIsa::kAvx2)) {
    EXPECT_EQ(advice, std::nullopt);
    return;
  }
  ASSERT_TRUE(advice.has_value());
  EXPECT_THAT(*advice, HasSubstr("Prescott"));
  EXPECT_THAT(*advice, HasSubstr(HasCpuIsa(CpuIsa::kAvx512)
                                     ? "OPENBLAS_CORETYPE=SkylakeX"
                                     : "OPENBLAS_CORETYPE=Haswell"));
}

}  // namespace
}  // namespace rowhouse::kernels
