#include "client/cli/checkpoint_text.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

client::CheckpointInfo Sample() {
  client::TableSpec spec;
  spec.row_count = 5000;
  spec.dim = 64;
  spec.shard_count = 3;
  client::CheckpointInfo checkpoint;
  checkpoint.name = "step-20";
  checkpoint.create_time = absl::FromUnixSeconds(86400);
  checkpoint.tables = {{"head", 19, spec, 5000, 2048},
                       {"ngram", 20, spec, 12, 1024}};
  checkpoint.trainer_state_count = 2;
  checkpoint.base = "step-10";
  checkpoint.size_bytes = 3072;
  return checkpoint;
}

TEST(CheckpointTextTest, AListHasALineEach) {
  client::CheckpointInfo other = Sample();
  other.name = "full";
  other.base = "";
  other.tables = {{"ngram", 7, std::nullopt, 1, 1}};
  EXPECT_EQ(
      CheckpointListText({other, Sample()}, false),
      "checkpoint  created               tables    event  trainer states      "
      "size  base\n"
      "full        1970-01-02 00:00:00Z       1        7               2  "
      "3.00 KiB\n"
      "step-20     1970-01-02 00:00:00Z       2  19 - 20               2  "
      "3.00 KiB  step-10\n");
}

TEST(CheckpointTextTest, OneTellsItsTables) {
  EXPECT_EQ(
      CheckpointText(Sample(), false),
      "checkpoint step-20, 1970-01-02 00:00:00Z, 3.00 KiB\n"
      "rows that changed since step-10; 2 trainer states\n"
      "\n"
      "table  event  kind     rows  dim  dtype  shards  saved rows      size\n"
      "head      19  sparse  5,000   64  bf16        3       5,000  2.00 KiB\n"
      "ngram     20  sparse  5,000   64  bf16        3          12  "
      "1.00 KiB\n");
}

TEST(CheckpointTextTest, ADiffTellsWhatDiffers) {
  const std::vector<client::CheckpointTableDiff> tables = {
      {.name = "a", .event = 1, .other_event = 2},
      {.name = "b",
       .event = 1,
       .other_event = 2,
       .differing_row_count = 1200,
       .first_differing_row_id = 7},
      {.name = "c", .event = 1},
      {.name = "d", .other_event = 2},
      {.name = "e", .event = 1, .other_event = 2, .shape_differs = true}};
  EXPECT_EQ(DiffText(tables, false),
            "table  event  other event  rows               first\n"
            "a          1            2  equal\n"
            "b          1            2  1,200 rows differ      7\n"
            "c          1               not in the other\n"
            "d                       2  only in the other\n"
            "e          1            2  another shape\n");
}

TEST(CheckpointTextTest, MachinesAreToldWhatIsNotThere) {
  const Json list = ToJson(Sample());
  EXPECT_EQ(list["create_time"], "1970-01-02T00:00:00+00:00");
  EXPECT_EQ(list["tables"][1]["event"], 20);
  EXPECT_EQ(list["tables"][1]["spec"]["shard_count"], 3);
  const Json diff =
      ToJson(client::CheckpointTableDiff{.name = "c", .event = 1});
  EXPECT_EQ(diff["event"], 1);
  EXPECT_TRUE(diff["other_event"].is_null());
  EXPECT_TRUE(diff["first_differing_row_id"].is_null());
}

}  // namespace
}  // namespace rowhouse::cli
