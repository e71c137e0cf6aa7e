#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "server/checkpoint/shard_file_reader.h"
#include "server/checkpoint/shard_file_writer.h"
#include "tests/server/checkpoint/faulty_files.h"
#include "tests/testing/safetensors.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;
using testing::StatusIs;

constexpr char kPath[] = "/disk/a.safetensors";

std::span<const std::byte> BytesOf(const std::vector<int32_t>& values) {
  return std::as_bytes(std::span(values));
}

class ShardFileTest : public ::testing::Test {
 protected:
  // Five rows: `weights` of 2 bf16, `state` of 1 int32; in blocks of two.
  std::unique_ptr<ShardFileWriter> Create() {
    ShardFileWriter::Options options = {
        5,
        2,
        {{"weights", "BF16", 2, 4}, {"state", "I32", 0, 4}},
        {{{"history", "F32", {2}}, BytesOf(history_)}},
        {{"table", "words"}}};
    auto writer = ShardFileWriter::Create(files_, kPath, options);
    EXPECT_THAT(writer, IsOk());
    return *std::move(writer);
  }
  void WriteBlocks(ShardFileWriter& writer) {
    for (size_t column = 0; column < 2; ++column) {
      for (int64_t block = 0; block < 3; ++block) {
        ASSERT_THAT(writer.WriteBlock(column, block, Block(column, block)),
                    IsOk());
      }
    }
  }
  std::span<const std::byte> Block(size_t column, int64_t block) const {
    const auto& rows = column == 0 ? weights_ : state_;
    const size_t first = static_cast<size_t>(block) * 2;
    return std::as_bytes(
        std::span(rows).subspan(first, std::min<size_t>(2, 5 - first)));
  }

  FaultyFiles files_{"/disk"};
  const std::vector<int32_t> history_ = {1, 2};
  const std::vector<int32_t> weights_ = {10, 11, 12, 13, 14};
  const std::vector<int32_t> state_ = {20, 21, 22, 23, 24};
};

TEST_F(ShardFileTest, IsASafetensorsFile) {
  const auto writer = Create();
  WriteBlocks(*writer);
  ASSERT_THAT(writer->Finish(), IsOk());
  const std::string& content = files_.ContentOf(kPath);
  const auto file = testing::SafeTensors::Parse(content);
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->metadata().at("table"), "words");
  const testing::Tensor weights = *file->Get("weights");
  EXPECT_EQ(weights.type, testing::TensorType::kBf16);
  EXPECT_THAT(weights.shape, ElementsAre(5, 2));
  EXPECT_THAT(weights.As<int32_t>(), ElementsAre(10, 11, 12, 13, 14));
  const testing::Tensor state = *file->Get("state");
  EXPECT_THAT(state.shape, ElementsAre(5));
  EXPECT_THAT(state.As<int32_t>(), ElementsAre(20, 21, 22, 23, 24));
  EXPECT_THAT(file->Get("history")->As<int32_t>(), ElementsAre(1, 2));
  // Wide elements come first: history, state, weights.
  EXPECT_EQ(content.size(), 4096U + 8 + 20 + 20);
  EXPECT_EQ(content.substr(4096 + 8, 1), "\x14");
}

TEST_F(ShardFileTest, ReadsWhatWasWritten) {
  const auto writer = Create();
  WriteBlocks(*writer);
  const auto summary = writer->Finish();
  ASSERT_THAT(summary, IsOk());
  const auto reader =
      ShardFileReader::Open(files_, kPath, writer->shape(), *summary);
  ASSERT_THAT(reader, IsOk());
  std::vector<int32_t> rows(2);
  ASSERT_THAT(
      (*reader)->ReadBlock(1, 1, std::as_writable_bytes(std::span(rows))),
      IsOk());
  EXPECT_THAT(rows, ElementsAre(22, 23));
  rows.resize(1);
  ASSERT_THAT(
      (*reader)->ReadBlock(0, 2, std::as_writable_bytes(std::span(rows))),
      IsOk());
  EXPECT_THAT(rows, ElementsAre(14));
  EXPECT_EQ((*reader)->ReadSide(0)->size(), 8U);
  EXPECT_EQ((*reader)->FindSide("history"), 0U);
  EXPECT_EQ((*reader)->FindSide("weights"), std::nullopt);
}

TEST_F(ShardFileTest, RowsGoAheadAndAreReadBack) {
  const auto writer = Create();
  ASSERT_THAT(
      writer->WriteAhead(1, 3, std::as_bytes(std::span(state_).subspan(3, 1))),
      IsOk());
  std::vector<int32_t> row(1);
  ASSERT_THAT(writer->ReadBack(1, 3, std::as_writable_bytes(std::span(row))),
              IsOk());
  EXPECT_THAT(row, ElementsAre(23));
}

TEST_F(ShardFileTest, HasNoNameBeforeItIsFinished) {
  const auto writer = Create();
  WriteBlocks(*writer);
  EXPECT_FALSE(*files_.Exists(kPath));
  ASSERT_THAT(writer->Finish(), IsOk());
  EXPECT_THAT(files_.AllFiles(), ElementsAre(kPath));
}

TEST_F(ShardFileTest, AnUnfinishedOneLeavesNothing) {
  WriteBlocks(*Create());
  EXPECT_THAT(files_.AllFiles(), ElementsAre());
}

TEST_F(ShardFileTest, IsNotFinishedWithoutABlock) {
  const auto writer = Create();
  ASSERT_THAT(writer->WriteBlock(0, 0, Block(0, 0)), IsOk());
  EXPECT_THAT(writer->Finish(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "block 1 of column weights was not written"));
}

TEST_F(ShardFileTest, NamesFileOffsetAndColumnOfDamage) {
  const auto writer = Create();
  WriteBlocks(*writer);
  const auto summary = writer->Finish();
  ASSERT_THAT(summary, IsOk());
  files_.ContentOf(kPath)[4096 + 8 + 13] ^= 1;  // Row 3 of `state`.
  const auto reader =
      ShardFileReader::Open(files_, kPath, writer->shape(), *summary);
  ASSERT_THAT(reader, IsOk());
  std::vector<int32_t> rows(2);
  const auto bytes = std::as_writable_bytes(std::span(rows));
  EXPECT_THAT((*reader)->ReadBlock(1, 0, bytes), IsOk());
  const absl::Status status = (*reader)->ReadBlock(1, 1, bytes);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                               "/disk/a.safetensors, at byte 4112: block 1 of "
                               "column state is not what was written"));
  const auto details = wire::DetailsOf(status);
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->reason, "DAMAGED");
  EXPECT_EQ(details->metadata.at("file"), kPath);
  EXPECT_EQ(details->metadata.at("offset"), "4112");
}

TEST_F(ShardFileTest, FindsTruncationExcessAndAForeignFile) {
  const auto writer = Create();
  WriteBlocks(*writer);
  const auto summary = writer->Finish();
  ASSERT_THAT(summary, IsOk());
  std::string& content = files_.ContentOf(kPath);
  const std::string whole = content;
  const auto open = [&] {
    return ShardFileReader::Open(files_, kPath, writer->shape(), *summary);
  };
  content = whole.substr(0, 4100);
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kDataLoss,
                               "at byte 4100: the file ends here"));
  content = whole + "x";
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kDataLoss,
                               "at byte 4144: the file goes on for 1 bytes"));
  content = std::string(whole.size(), 'x');
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kDataLoss,
                               "at byte 0: the header is not what"));
  ASSERT_THAT(files_.Remove(kPath), IsOk());
  EXPECT_THAT(open(), StatusIs(absl::StatusCode::kDataLoss,
                               "at byte 0: the file is missing"));
}

TEST_F(ShardFileTest, RefusesShapesThatNoFileHas) {
  const auto refused = [&](ShardFileWriter::Options options) {
    return ShardFileWriter::Create(files_, kPath, options).status();
  };
  constexpr auto kCode = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(refused({1, 0, {}, {}, {}}), StatusIs(kCode, "blocks of 0"));
  EXPECT_THAT(refused({-1, 1, {}, {}, {}}), StatusIs(kCode, "-1 rows"));
  EXPECT_THAT(refused({1, 1, {{"w", "BF16", 2, 3}}, {}, {}}),
              StatusIs(kCode, "column w has 3 bytes a row"));
  EXPECT_THAT(refused({1, 1, {{"w", "F8", 2, 2}}, {}, {}}),
              StatusIs(kCode, "column w"));
  EXPECT_THAT(refused({int64_t{1} << 60, 1, {{"w", "F32", 2, 8}}, {}, {}}),
              StatusIs(kCode, "column w is too large"));
  EXPECT_THAT(refused({1, 1, {{"w", "F32", 1, 4}, {"w", "F32", 1, 4}}, {}, {}}),
              StatusIs(kCode, "two tensors are named w"));
  EXPECT_THAT(refused({1, 1, {}, {{{"s", "F32", {3}}, BytesOf(history_)}}, {}}),
              StatusIs(kCode, "tensor s has 8 bytes; its shape takes 12"));
  EXPECT_THAT(files_.AllFiles(), ElementsAre());
}

TEST_F(ShardFileTest, IsNotBegunWithoutRoomForAllOfIt) {
  files_.SetCapacity(47);
  const ShardFileWriter::Options options = {
      6, 2, {{"weights", "BF16", 4, 8}}, {}, {}};
  EXPECT_THAT(ShardFileWriter::Create(files_, kPath, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "/disk/a.safetensors cannot be written: the disk has "
                       "room for 47 bytes; wanted are 48"));
  EXPECT_THAT(files_.AllFiles(), ElementsAre());
}

}  // namespace
}  // namespace rowhouse::server
