// Files that are cut off, or damaged.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "client/push_log/file_fault.h"
#include "client/push_log/log_reader.h"
#include "client/push_log/log_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/client/push_log/push_log_fixture.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::push_log {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class DamageTest : public PushLogTest {
 protected:
  void SetUp() override {
    TableSpec spec = Spec();
    spec.shard_count = 2;
    spec.trainer_count = 1;
    ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
    RunningRecord record(*cluster_, Path("log"), {.last_event = 2});
    auto trainer = *Trainer::Join(*cluster_, "t", 0);
    for (int64_t event = 1; event <= 2; ++event) {
      for (const int64_t row_id : {3, 30}) {
        const std::vector<float> row = {1, 2, 3};
        ASSERT_THAT(trainer->Push(event, std::vector{row_id},
                                  std::as_bytes(std::span(row))),
                    IsOk());
      }
      ASSERT_THAT(trainer->SealAndCommit(
                      event, RowAdamScalars{.step_size = 0.1, .eps = 1}),
                  IsOk());
    }
    ASSERT_THAT(record.Wait(), IsOk());
    whole_ = ReadFile(Path("log"));
    ASSERT_GT(whole_.size(), 500);
  }

  absl::StatusOr<LogInfo> InspectBytes(const std::string& bytes) {
    WriteFile(Path("other"), bytes);
    return Inspect(Path("other"));
  }

  std::string whole_;
};

TEST_F(DamageTest, EveryCutLeavesTheWholeEventsBeforeIt) {
  const int64_t header_end = [&] {
    auto reader = *LogReader::Open(Path("log"));
    log::v1::LogRecord record;
    EXPECT_EQ(*reader->Next(record), true);
    return reader->offset();
  }();
  int64_t last_event = 0;
  std::map<int64_t, int64_t> cuts;  // Files by their last event.
  for (size_t size = 0; size < whole_.size(); ++size) {
    SCOPED_TRACE(size);
    const auto info = InspectBytes(whole_.substr(0, size));
    if (static_cast<int64_t>(size) < header_end) {
      ASSERT_THAT(info, StatusIs(absl::StatusCode::kDataLoss, "offset"));
      continue;
    }
    ASSERT_THAT(info, IsOk());
    ASSERT_FALSE(info->complete);
    ASSERT_LE(info->whole_bytes, static_cast<int64_t>(size));
    ASSERT_GE(info->last_event, last_event);
    last_event = info->last_event;
    ++cuts[last_event];
  }
  EXPECT_EQ(last_event, 2);
  EXPECT_EQ(cuts.size(), 3);
  EXPECT_TRUE(InspectBytes(whole_)->complete);
}

TEST_F(DamageTest, EveryFlippedBitIsFound) {
  for (size_t i = 0; i < whole_.size(); ++i) {
    SCOPED_TRACE(i);
    std::string bytes = whole_;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    const auto info = InspectBytes(bytes);
    ASSERT_FALSE(info.ok());
    const bool version = i >= 8 && i < 12;
    ASSERT_THAT(info, StatusIs(version ? absl::StatusCode::kUnimplemented
                                       : absl::StatusCode::kDataLoss,
                               version ? "version" : "offset"));
    ASSERT_EQ(wire::ReasonOf(info.status()),
              version ? kOtherVersion : kDamaged);
  }
}

TEST_F(DamageTest, RecordsInAnotherOrderAreFound) {
  auto reader = *LogReader::Open(Path("log"));
  log::v1::LogRecord record;
  std::vector<std::string> frames;
  const std::string prefix = whole_.substr(0, reader->offset());
  for (int64_t from = reader->offset(); *reader->Next(record);
       from = reader->offset()) {
    frames.push_back(whole_.substr(from, reader->offset() - from));
  }
  ASSERT_GT(frames.size(), 10);
  const auto join = [&](size_t left_out, size_t swapped) {
    std::string bytes = prefix;
    for (size_t i = 0; i < frames.size(); ++i) {
      if (i == left_out) continue;
      const size_t from = i == swapped ? i + 1 : i == swapped + 1 ? swapped : i;
      bytes += frames[from];
    }
    return bytes;
  };
  ASSERT_EQ(join(frames.size(), frames.size()), whole_);
  for (size_t i = 0; i + 1 < frames.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THAT(InspectBytes(join(i, frames.size())),
                StatusIs(absl::StatusCode::kDataLoss, "offset"));
    EXPECT_THAT(InspectBytes(join(frames.size(), i)),
                StatusIs(absl::StatusCode::kDataLoss, "offset"));
  }
  EXPECT_THAT(InspectBytes(whole_ + frames.back()),
              StatusIs(absl::StatusCode::kDataLoss, "after the footer"));
}

TEST_F(DamageTest, OtherFilesAreNoLogs) {
  EXPECT_THAT(Inspect(Path("none")),
              StatusIs(absl::StatusCode::kNotFound, "none"));
  EXPECT_THAT(InspectBytes("a text of more than twelve bytes"),
              StatusIs(absl::StatusCode::kDataLoss, "no push log"));
  EXPECT_EQ(wire::ReasonOf(Inspect(Path("none")).status()), kNoFile);
  // A folder opens, and cannot be read.
  EXPECT_EQ(wire::ReasonOf(Inspect(Path("")).status()), kNotReadable);
}

TEST(LogWriterTest, CutsOffWhatIsNotWhole) {
  const std::string path = ::testing::TempDir() + "log_writer_test";
  log::v1::LogRecord record;
  const auto append = [&](LogWriter& writer, int64_t event) {
    record.mutable_event_end()->set_event(event);
    EXPECT_THAT(writer.Append(record), IsOk());
  };
  {
    auto writer = *LogWriter::Create(path, /*overwrite=*/true);
    append(*writer, 1);
    EXPECT_THAT(writer->MarkWhole(), IsOk());
    append(*writer, 2);
    EXPECT_THAT(writer->Rewind(), IsOk());
    append(*writer, 3);
    EXPECT_THAT(writer->MarkWhole(), IsOk());
    append(*writer, 4);
  }
  std::vector<int64_t> events;
  auto reader = *LogReader::Open(path);
  while (*reader->Next(record)) events.push_back(record.event_end().event());
  EXPECT_THAT(events, ::testing::ElementsAre(1, 3));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace rowhouse::client::push_log
