#include "tests/testing/golden_path.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"

namespace rowhouse::testing {
namespace {

constexpr char kVariable[] = "ROWHOUSE_GOLDEN_DIR";

class GoldenPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* const value = std::getenv(kVariable)) old_ = value;
    unsetenv(kVariable);
  }
  void TearDown() override {
    if (!old_.empty()) setenv(kVariable, old_.c_str(), /*overwrite=*/1);
  }

 private:
  std::string old_;
};

TEST_F(GoldenPathTest, IsAboveTheProgram) {
  if (!ROWHOUSE_BUILT_IN_TREE) GTEST_SKIP() << "built outside the source tree";
  EXPECT_TRUE(std::filesystem::exists(GoldenPath("ngram_adam.safetensors")));
}

TEST_F(GoldenPathTest, IsWhereTheVariableSays) {
  setenv(kVariable, "/somewhere", /*overwrite=*/1);
  EXPECT_EQ(GoldenPath("a"), "/somewhere/a");
}

}  // namespace
}  // namespace rowhouse::testing
