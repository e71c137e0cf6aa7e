#include "proto/wire/file.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rowhouse/v1/table.pb.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::wire {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class FileTest : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_.c_str()); }

  const std::string& File(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }

  const std::string path_ =
      ::testing::TempDir() + "/wire_file_" + std::to_string(getpid());
};

TEST_F(FileTest, AFileIsReadAsAWhole) {
  EXPECT_EQ(*ReadFile(File("")), "");
  EXPECT_EQ(*ReadFile(File("two\nlines")), "two\nlines");
  EXPECT_THAT(ReadFile("/nowhere/file"),
              StatusIs(absl::StatusCode::kNotFound, "/nowhere/file"));
  EXPECT_THAT(ReadFile(::testing::TempDir()),
              StatusIs(absl::StatusCode::kInvalidArgument, "is a directory"));
}

TEST_F(FileTest, ATextprotoIsParsed) {
  v1::RowInitializer initializer;
  ASSERT_THAT(ReadTextProto(File("uniform { seed: 7 }"), initializer), IsOk());
  EXPECT_EQ(initializer.uniform().seed(), 7);
}

TEST_F(FileTest, AFaultOfATextprotoNamesItsPlace) {
  v1::RowInitializer initializer;
  EXPECT_THAT(ReadTextProto(File("uniform {\n  sead: 7 }"), initializer),
              StatusIs(absl::StatusCode::kInvalidArgument, path_ + ":2:"));
}

}  // namespace
}  // namespace rowhouse::wire
