#include "tests/testing/safetensors.h"

#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;

std::string File(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  std::string content(sizeof(size), '\0');
  std::memcpy(content.data(), &size, sizeof(size));
  return content + header + data;
}

TEST(SafeTensorsTest, ReadsTensorsAndMetadata) {
  const std::string data("\x01\0\0\0\xff\xff\xff\xff\x80\x3f", 10);
  const auto file = SafeTensors::Parse(
      File(R"({"__metadata__":{"why":"test"},)"
           R"("a":{"dtype":"I32","shape":[2,1],"data_offsets":[0,8]},)"
           R"("b":{"dtype":"BF16","shape":[1],"data_offsets":[8,10]}})",
           data));
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->metadata().at("why"), "test");
  const auto a = file->Get("a");
  ASSERT_THAT(a, IsOk());
  EXPECT_THAT(a->shape, ElementsAre(2, 1));
  EXPECT_THAT(a->As<int32_t>(), ElementsAre(1, -1));
  const auto b = file->Get("b");
  ASSERT_THAT(b, IsOk());
  EXPECT_THAT(b->As<uint16_t>(), ElementsAre(0x3f80));
}

TEST(SafeTensorsTest, NamesAnAbsentTensor) {
  const auto file = SafeTensors::Parse(File("{}", ""));
  ASSERT_THAT(file, IsOk());
  EXPECT_FALSE(file->Has("a"));
  EXPECT_THAT(file->Get("a"), StatusIs(absl::StatusCode::kNotFound, "a"));
}

TEST(SafeTensorsTest, RefusesATruncatedFile) {
  const std::string file =
      File(R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})",
           std::string(4, 'x'));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(SafeTensors::Parse(file.substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument, ""))
        << size << " bytes";
  }
  EXPECT_THAT(SafeTensors::Parse(file), IsOk());
}

TEST(SafeTensorsTest, RefusesOffsetsOutsideTheData) {
  EXPECT_THAT(SafeTensors::Parse(File(
                  R"({"a":{"dtype":"I32","shape":[2],"data_offsets":[0,8]}})",
                  std::string(4, 'x'))),
              StatusIs(absl::StatusCode::kInvalidArgument, "data_offsets"));
}

TEST(SafeTensorsTest, RefusesAShapeThatIsNotItsBytes) {
  for (const char* shape : {"[2]", "[-1]", "[4611686018427387905,4]"}) {
    EXPECT_THAT(
        SafeTensors::Parse(File(std::string(R"({"a":{"dtype":"I32","shape":)") +
                                    shape + R"(,"data_offsets":[0,4]}})",
                                std::string(4, 'x'))),
        StatusIs(absl::StatusCode::kInvalidArgument, "shape"))
        << shape;
  }
}

TEST(SafeTensorsTest, NamesAnUnknownType) {
  EXPECT_THAT(
      SafeTensors::Parse(File(
          R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", "x")),
      StatusIs(absl::StatusCode::kInvalidArgument, "F8"));
}

}  // namespace
}  // namespace rowhouse::testing
