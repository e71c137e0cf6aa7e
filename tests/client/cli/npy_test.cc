#include "client/cli/npy.h"

#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::cli {
namespace {

using client::DType;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

absl::StatusOr<NpyHeader> Read(const std::string& bytes) {
  std::istringstream in(bytes);
  return ReadNpyHeader(in);
}

// A file of version 1 with this dictionary.
std::string File(const std::string& dictionary) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size());
  bytes += '\0';
  return bytes + dictionary;
}

TEST(NpyTest, AHeadThatNumpyWroteIsRead) {
  // As numpy.save writes numpy.zeros((3, 4), "<f4").
  std::string bytes("\x93NUMPY\x01\x00v\x00", 10);
  bytes += "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  bytes.resize(127, ' ');
  bytes += "\nrows";
  std::istringstream in(bytes);
  const absl::StatusOr<NpyHeader> header = ReadNpyHeader(in);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->dtype, "<f4");
  EXPECT_FALSE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(3, 4));
  EXPECT_EQ(in.tellg(), 128);
}

TEST(NpyTest, WhatIsWrittenIsRead) {
  const std::string bytes = NpyHeaderOf(DType::kBf16, 84'602'880, 768);
  EXPECT_EQ(bytes.size() % 64, 0);
  const absl::StatusOr<NpyHeader> header = Read(bytes);
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->dtype, "<u2");
  EXPECT_EQ(*CheckNpyRows(*header, DType::kBf16, 768), 84'602'880);
}

TEST(NpyTest, LaterVersionsHaveLongerLengths) {
  const std::string dictionary =
      "{'shape': (7,), 'fortran_order': True, 'descr': '|V2'}";
  std::string bytes("\x93NUMPY\x02\x00", 8);
  bytes += static_cast<char>(dictionary.size());
  bytes += std::string(3, '\0') + dictionary;
  const absl::StatusOr<NpyHeader> header = Read(bytes);
  ASSERT_THAT(header, IsOk());
  EXPECT_TRUE(header->fortran_order);
  EXPECT_THAT(header->shape, ElementsAre(7));
}

TEST(NpyTest, WhatIsNoNpyFileIsRefused) {
  for (const std::string& bytes :
       {std::string(), std::string("\x93NUM"), std::string("PK\3\4 a zip file"),
        std::string("\x93NUMPY\x09\x00\x10\x00", 10),
        std::string("\x93NUMPY\x01\x00\x10\x00{}", 12), File("{}"),
        File("{'descr': '<f4', 'fortran_order': False}"),
        File("{'descr': '<f4', 'fortran_order': 1, 'shape': (1, 2)}"),
        File("{'descr': [('a', '<f4')], 'fortran_order': False, "
             "'shape': (1, 2)}")}) {
    EXPECT_THAT(Read(bytes), StatusIs(kInvalid, "wanted a .npy file")) << bytes;
  }
}

TEST(NpyTest, RowsMustBeTheTables) {
  const NpyHeader floats{"<f4", false, {3, 4}};
  EXPECT_EQ(*CheckNpyRows(floats, DType::kFp32, 4), 3);
  EXPECT_THAT(CheckNpyRows(floats, DType::kFp32, 5),
              StatusIs(kInvalid, "of shape (3, 4), wanted (rows, 5)"));
  EXPECT_THAT(CheckNpyRows(floats, DType::kBf16, 4),
              StatusIs(kInvalid, "an array of '<f4', wanted '<u2'"));
  EXPECT_THAT(CheckNpyRows({"<f8", false, {3, 4}}, DType::kFp32, 4),
              StatusIs(kInvalid, "an array of '<f8', wanted '<f4'"));
  EXPECT_THAT(CheckNpyRows({">f4", false, {3, 4}}, DType::kFp32, 4),
              StatusIs(kInvalid, "'>f4'"));
  EXPECT_THAT(CheckNpyRows({"<f4", true, {3, 4}}, DType::kFp32, 4),
              StatusIs(kInvalid, "Fortran order"));
  EXPECT_THAT(CheckNpyRows({"<f4", false, {12}}, DType::kFp32, 4),
              StatusIs(kInvalid, "(12)"));
  EXPECT_EQ(*CheckNpyRows({"|V2", false, {3, 4}}, DType::kBf16, 4), 3);
}

}  // namespace
}  // namespace rowhouse::cli
