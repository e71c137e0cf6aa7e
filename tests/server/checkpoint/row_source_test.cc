#include "server/checkpoint/row_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/checkpoint/row_buffer.h"
#include "tests/server/checkpoint/faulty_files.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using testing::IsOk;
using testing::Random;
using testing::StatusIs;

class RowSourceTest : public ::testing::Test {
 protected:
  // A checkpoint `c0` of all rows and deltas `c1`, `c2`, ... on it, each with
  // cuts and blocks of its own; returns the table as of the last.
  SampleTable WriteChain(int64_t row_count, int64_t delta_count,
                         Random& random) {
    SampleTable table = RandomTable("words", row_count, random);
    for (int64_t i = 0; i <= delta_count; ++i) {
      SampleWriting writing;
      std::string base;
      if (i > 0) {
        base = absl::StrCat("c", i - 1);
        writing.base = BaseTable{base, table.event};
        table = NextEvent(table, random.Uniform(0, 1), random, writing.changed);
      }
      writing.bounds = RandomBounds(row_count, random);
      writing.block_rows = random.Integer(1, 12);
      const std::string name = absl::StrCat("c", i);
      EXPECT_THAT(WriteSample(directory_, name, table, writing, random),
                  IsOk());
      EXPECT_THAT(PublishSample(directory_, name, {table},
                                absl::FromUnixSeconds(i), base),
                  IsOk());
    }
    return table;
  }
  std::unique_ptr<RowSource> Open(const std::string& checkpoint) {
    const auto chain = directory_.LoadChain(checkpoint);
    EXPECT_THAT(chain, IsOk());
    auto source = RowSource::Open(directory_, *chain, "words");
    EXPECT_THAT(source, IsOk());
    return *std::move(source);
  }

  FaultyFiles files_{"/disk"};
  CheckpointDirectory directory_{files_, "/disk"};
};

void ExpectRows(RowSource& source, const SampleTable& table, int64_t first,
                int64_t count) {
  RowBuffer buffer(table.columns, count);
  const auto rows = buffer.First(count);
  ASSERT_THAT(source.Read(first, count, rows), IsOk());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto row_bytes = static_cast<size_t>(table.columns[i].row_bytes);
    const std::string found(reinterpret_cast<const char*>(rows[i].data()),
                            rows[i].size());
    ASSERT_EQ(found,
              table.bytes[i].substr(static_cast<size_t>(first) * row_bytes,
                                    static_cast<size_t>(count) * row_bytes))
        << "column " << i << ", " << count << " rows from " << first << " on";
  }
}

TEST_F(RowSourceTest, ReadsWhateverRangesOfWhateverChains) {
  Random random(11);
  SCOPED_TRACE(random.Trace());
  for (int round = 0; round < 60; ++round) {
    files_ = FaultyFiles("/disk");
    const int64_t row_count = random.Integer(1, 60);
    const int64_t delta_count = random.Integer(0, 4);
    const SampleTable table = WriteChain(row_count, delta_count, random);
    const auto source = Open(absl::StrCat("c", delta_count));
    EXPECT_EQ(source->table().row_count(), row_count);
    for (int i = 0; i < 20; ++i) {
      const int64_t first = random.Integer(0, row_count);
      ExpectRows(*source, table, first, random.Integer(0, row_count - first));
    }
    for (int64_t row = 0; row < row_count;) {
      const int64_t end = source->PieceEnd(row);
      ASSERT_GT(end, row);
      ExpectRows(*source, table, row, end - row);
      row = end;
    }
  }
}

TEST_F(RowSourceTest, ATableWithoutRowsHasNone) {
  Random random(12);
  SCOPED_TRACE(random.Trace());
  const SampleTable table = WriteChain(0, 1, random);
  const auto read = ReadSample(directory_, "c1", "words");
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, table);
}

TEST_F(RowSourceTest, ReadsSideTensorsOfTheNewest) {
  Random random(13);
  SCOPED_TRACE(random.Trace());
  const SampleTable table = WriteChain(9, 2, random);
  const auto source = Open("c2");
  const auto history = source->ReadSide(0, "beta2_history");
  ASSERT_THAT(history, IsOk());
  EXPECT_EQ(static_cast<int64_t>(history->size()), table.event * 4);
  EXPECT_THAT(source->ReadSide(0, "none"),
              StatusIs(absl::StatusCode::kNotFound, "has no tensor none"));
}

TEST_F(RowSourceTest, NamesTheFileOfADamagedDelta) {
  Random random(14);
  SCOPED_TRACE(random.Trace());
  SampleTable table = RandomTable("words", 10, random);
  SampleWriting writing = {{0, 10}, 4};
  ASSERT_THAT(WriteSample(directory_, "a", table, writing, random), IsOk());
  ASSERT_THAT(PublishSample(directory_, "a", {table}, absl::UnixEpoch()),
              IsOk());
  writing.base = BaseTable{"a", table.event};
  table = NextEvent(table, 1, random, writing.changed);
  ASSERT_THAT(WriteSample(directory_, "b", table, writing, random), IsOk());
  ASSERT_THAT(PublishSample(directory_, "b", {table}, absl::UnixEpoch(), "a"),
              IsOk());
  files_.ContentOf("/disk/b/words/0-of-1.safetensors").back() ^= 1;
  EXPECT_THAT(ReadSample(directory_, "b", "words"),
              StatusIs(absl::StatusCode::kDataLoss,
                       "/disk/b/words/0-of-1.safetensors, at byte "));
  EXPECT_THAT(ReadSample(directory_, "a", "words"), IsOk());
}

TEST_F(RowSourceTest, HasOnlyTablesOfTheCheckpoint) {
  Random random(15);
  WriteChain(3, 0, random);
  const auto chain = directory_.LoadChain("c0");
  ASSERT_THAT(chain, IsOk());
  EXPECT_THAT(RowSource::Open(directory_, *chain, "other"),
              StatusIs(absl::StatusCode::kNotFound,
                       "there is no table other in checkpoint c0"));
}

}  // namespace
}  // namespace rowhouse::server
