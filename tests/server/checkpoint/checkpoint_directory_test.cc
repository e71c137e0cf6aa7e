#include "server/checkpoint/checkpoint_directory.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "server/checkpoint/pending_file.h"
#include "tests/server/checkpoint/faulty_files.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::Random;
using testing::StatusIs;

constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kNotFound = absl::StatusCode::kNotFound;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

class CheckpointDirectoryTest : public ::testing::Test {
 protected:
  CheckpointDirectoryTest() : table_(RandomTable("words", 20, random_)) {}

  void Write(const std::string& name,
             std::vector<int64_t> bounds = {0, 7, 20}) {
    ASSERT_THAT(
        WriteSample(directory_, name, table_, {std::move(bounds), 4}, random_),
        IsOk());
  }
  void Make(const std::string& name, int64_t seconds) {
    Write(name);
    ASSERT_THAT(PublishSample(directory_, name, {table_}, At(seconds)), IsOk());
  }
  // A delta of the table's next event.
  void MakeDelta(const std::string& name, const std::string& base,
                 int64_t seconds) {
    SampleWriting writing = {{0, 11, 20}, 3, BaseTable{base, table_.event}};
    table_ = NextEvent(table_, 0.4, random_, writing.changed);
    ASSERT_THAT(WriteSample(directory_, name, table_, writing, random_),
                IsOk());
    ASSERT_THAT(PublishSample(directory_, name, {table_}, At(seconds), base),
                IsOk());
  }
  std::vector<std::string> Whole() {
    std::vector<std::string> names;
    const auto list = directory_.List();
    EXPECT_THAT(list, IsOk());
    for (const Manifest& manifest : list->whole) {
      names.push_back(manifest.checkpoint);
    }
    return names;
  }

  Random random_{21};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
  FaultyFiles files_{"/disk"};
  CheckpointDirectory directory_{files_, "/disk"};
  SampleTable table_;
};

TEST_F(CheckpointDirectoryTest, IsWholeOnceItIsPublished) {
  Write("a");
  EXPECT_THAT(directory_.Load("a"),
              StatusIs(kNotFound,
                       "there is no whole checkpoint a: no file "
                       "/disk/a/manifest.json"));
  EXPECT_THAT(directory_.List()->unfinished, ElementsAre("a"));
  ASSERT_THAT(directory_.WriteTrainerState("a", 0, SampleState(0)), IsOk());
  const auto manifest = PublishSample(directory_, "a", {table_}, At(7), "", 1);
  ASSERT_THAT(manifest, IsOk());
  const auto loaded = directory_.Load("a");
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->manifest, *manifest);
  EXPECT_EQ(loaded->manifest.step, 5);
  EXPECT_EQ(loaded->tables[0].shards.size(), 2U);
  EXPECT_EQ(loaded->tables[0].saved_row_count(), 20);
  EXPECT_EQ(*ReadSample(directory_, "a", "words"), table_);
  EXPECT_EQ(*directory_.ReadTrainerState("a", 0), SampleState(0));
  EXPECT_THAT(directory_.ReadTrainerState("a", 1),
              StatusIs(kNotFound, "there is no state of trainer 1"));
  EXPECT_THAT(Whole(), ElementsAre("a"));
  EXPECT_THAT(directory_.Verify("a", GoOn), IsOk());
}

TEST_F(CheckpointDirectoryTest, PublishingAgainIsOkAndOtherwiseIsNot) {
  Make("a", 1);
  EXPECT_THAT(PublishSample(directory_, "a", {table_}, At(2)), IsOk());
  EXPECT_EQ(directory_.Load("a")->manifest.created_time, At(1));
  SampleTable later = table_;
  ++later.event;
  EXPECT_THAT(PublishSample(directory_, "a", {later}, At(2)),
              StatusIs(kExists, "checkpoint a is there already"));
  EXPECT_THAT(WriteSample(directory_, "a", table_, {{0, 20}}, random_),
              StatusIs(kExists, ""));
  EXPECT_THAT(directory_.WriteTrainerState("a", 0, "x"), StatusIs(kExists, ""));
  EXPECT_THAT(directory_.RemoveShard({"a", "words", 0, 2}),
              StatusIs(kExists, ""));
  EXPECT_THAT(directory_.Compact("a", "a", At(3), GoOn), StatusIs(kExists, ""));
}

TEST_F(CheckpointDirectoryTest, NamesWhatIsMissing) {
  const auto publish = [&](int64_t states, const std::string& base = "") {
    return PublishSample(directory_, "a", {table_}, At(1), base, states);
  };
  EXPECT_THAT(publish(0),
              StatusIs(kPrecondition, "there is no shard of table words"));
  Write("a");
  EXPECT_THAT(publish(2), StatusIs(kPrecondition,
                                   "the state of trainer 0 is missing "
                                   "(/disk/a/trainers/0.json)"));
  EXPECT_THAT(publish(0, "b"),
              StatusIs(kNotFound, "there is no whole checkpoint b"));
  ASSERT_THAT(directory_.RemoveShard({"a", "words", 1, 2}), IsOk());
  const absl::Status status = publish(0).status();
  EXPECT_THAT(status, StatusIs(kPrecondition,
                               "shard 1 of 2 of table words is missing"));
  EXPECT_EQ(wire::ReasonOf(status), "CHECKPOINT_INCOMPLETE");
  Write("a", {0, 3, 9, 20});
  EXPECT_THAT(publish(0),
              StatusIs(kPrecondition,
                       "there are files of 2 and of 3 shards of table words"));
  EXPECT_THAT(Whole(), IsEmpty());
}

TEST_F(CheckpointDirectoryTest, ShardsOfAnotherEventAreNotOfIt) {
  Write("a");
  ++table_.event;
  EXPECT_THAT(PublishSample(directory_, "a", {table_}, At(1)),
              StatusIs(kPrecondition,
                       absl::StrCat("it is as of event ", table_.event - 1)));
}

TEST_F(CheckpointDirectoryTest, AWrittenShardCountsOnlyWithItsManifest) {
  Write("a");
  // The same shard is begun again, and not finished.
  ASSERT_THAT(
      directory_.CreateShardFile({"a", "words", 0, 2}, {1, 1, {}, {}, {}}),
      IsOk());
  EXPECT_THAT(
      PublishSample(directory_, "a", {table_}, At(1)),
      StatusIs(kPrecondition, "shard 0 of 2 of table words is missing"));
}

TEST_F(CheckpointDirectoryTest, StatesOfAnEarlierAttemptAreForgotten) {
  ASSERT_THAT(directory_.ForgetTrainerStates("a"), IsOk());
  for (const int64_t rank : {0, 12}) {
    ASSERT_THAT(directory_.WriteTrainerState("a", rank, "old"), IsOk());
  }
  // A table of that name has files of other names.
  const std::string shard = "/disk/a/trainers/0-of-1.json";
  ASSERT_THAT(WriteWholeFile(files_, shard, "x"), IsOk());
  ASSERT_THAT(directory_.ForgetTrainerStates("a"), IsOk());
  EXPECT_TRUE(*files_.Exists(shard));
  ASSERT_THAT(files_.Remove(shard), IsOk());
  Write("a");
  EXPECT_THAT(PublishSample(directory_, "a", {table_}, At(1), "", 1),
              StatusIs(kPrecondition, "trainer 0"));
  ASSERT_THAT(directory_.WriteTrainerState("a", 0, "new"), IsOk());
  ASSERT_THAT(PublishSample(directory_, "a", {table_}, At(1), "", 1), IsOk());
  EXPECT_EQ(*directory_.ReadTrainerState("a", 0), "new");
  EXPECT_THAT(directory_.ForgetTrainerStates("a"),
              StatusIs(absl::StatusCode::kAlreadyExists, ""));
}

TEST_F(CheckpointDirectoryTest, ADeltaNeedsItsBase) {
  Make("a", 1);
  MakeDelta("b", "a", 2);
  MakeDelta("c", "b", 3);
  EXPECT_EQ(*ReadSample(directory_, "c", "words"), table_);
  const absl::Status status = directory_.Delete("b");
  EXPECT_THAT(status, StatusIs(kPrecondition, "checkpoint c is based on b"));
  EXPECT_EQ(wire::ReasonOf(status), "CHECKPOINT_IN_USE");
  ASSERT_THAT(directory_.Delete("c"), IsOk());
  ASSERT_THAT(directory_.Delete("b"), IsOk());
  EXPECT_THAT(Whole(), ElementsAre("a"));
  EXPECT_THAT(directory_.Delete("b"), StatusIs(kNotFound, "no checkpoint b"));
}

TEST_F(CheckpointDirectoryTest, RetentionKeepsTheNewestAndTheirBases) {
  Make("a", 1);
  Make("b", 2);
  MakeDelta("c", "b", 3);
  MakeDelta("d", "c", 4);
  EXPECT_THAT(*directory_.Retain(4, {}), IsEmpty());
  EXPECT_THAT(*directory_.Retain(1, {}), ElementsAre("a"));
  EXPECT_THAT(Whole(), ElementsAre("b", "c", "d"));
  EXPECT_EQ(*ReadSample(directory_, "d", "words"), table_);
  Make("e", 5);
  EXPECT_THAT(*directory_.Retain(1, {}), ElementsAre("d", "c", "b"));
  EXPECT_THAT(files_.List("/disk")->size(), 1U);
}

// What is based on it may be what cannot be read.
TEST_F(CheckpointDirectoryTest, ABaseStaysWhileADeltaCannotBeRead) {
  constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
  Make("a", 1);
  MakeDelta("b", "a", 2);
  Make("c", 3);
  files_.SetUnreadable("/disk/b/manifest.json");
  EXPECT_THAT(directory_.Retain(1, {}), StatusIs(kUnavailable, ""));
  EXPECT_THAT(directory_.Delete("a"), StatusIs(kUnavailable, ""));
  files_.SetUnreadable("");
  EXPECT_THAT(directory_.LoadChain("b"), IsOk());
  EXPECT_THAT(*directory_.Retain(1, {}), ElementsAre("b", "a"));
}

TEST_F(CheckpointDirectoryTest, RetentionRemovesOldLeftovers) {
  files_.SetTime(At(1));
  Write("old");
  Write("named");
  ASSERT_THAT(
      WriteWholeFile(
          files_, "/disk/old/words/" + std::string("0-of-2") + ".safetensors",
          "x"),
      IsOk());
  ASSERT_THAT(files_.MakeDirectory("/disk/foreign"), IsOk());
  ASSERT_THAT(WriteWholeFile(files_, "/disk/foreign/thesis.txt", "x"), IsOk());
  files_.SetTime(At(2));
  Write("new");  // It may wait for states of trainers.
  Make("a", 3601);
  EXPECT_THAT(*directory_.Retain(1, {"named"}), ElementsAre("old"));
  EXPECT_THAT(directory_.List()->unfinished,
              ElementsAre("foreign", "named", "new"));
  EXPECT_THAT(directory_.Delete("foreign"),
              StatusIs(kPrecondition, "/disk/foreign/thesis.txt is none of"));
  EXPECT_TRUE(*files_.Exists("/disk/foreign/thesis.txt"));
}

TEST_F(CheckpointDirectoryTest, PublishingRemovesWhatIsTemporary) {
  Write("a");
  const std::string left = "/disk/a/words/0-of-2.json.0123456789abcdef.tmp";
  ASSERT_THAT(files_.Create(left), IsOk());
  ASSERT_THAT(PublishSample(directory_, "a", {table_}, At(1)), IsOk());
  EXPECT_FALSE(*files_.Exists(left));
}

TEST_F(CheckpointDirectoryTest, CountsRowsThatDiffer) {
  Make("a", 1);
  const int64_t event = table_.event;
  SampleTable other = table_;
  ++other.event;
  other.bytes[0][static_cast<size_t>(3 * table_.columns[0].row_bytes)] ^= 1;
  other.bytes.back().back() ^= 1;
  SampleTable extra = RandomTable("extra", 2, random_);
  ASSERT_THAT(WriteSample(directory_, "b", other, {{0, 1, 1, 20}, 5}, random_),
              IsOk());
  ASSERT_THAT(WriteSample(directory_, "b", extra, {{0, 2}}, random_), IsOk());
  ASSERT_THAT(PublishSample(directory_, "b", {other, extra}, At(2)), IsOk());
  int64_t done = 0;
  const auto diffs =
      directory_.Diff("a", "b", [&](int64_t done_bytes, int64_t total_bytes) {
        done = done_bytes;
        EXPECT_LE(done_bytes, total_bytes);
        EXPECT_EQ(total_bytes, 2 * 20 * RowBytesOf(table_.columns));
        return true;
      });
  ASSERT_THAT(diffs, IsOk());
  EXPECT_EQ(done, 2 * 20 * RowBytesOf(table_.columns));
  EXPECT_THAT(*diffs,
              ElementsAre(TableDiff{"extra", {}, extra.event, false, 0, {}},
                          TableDiff{"words", event, event + 1, false, 2, 3}));
  EXPECT_THAT(*directory_.Diff("a", "a", GoOn),
              ElementsAre(TableDiff{"words", event, event, false, 0, {}}));
}

TEST_F(CheckpointDirectoryTest, TablesOfOtherShapesAreNotCompared) {
  Make("a", 1);
  table_ = RandomTable("words", 21, random_);
  Write("b", {0, 21});
  ASSERT_THAT(PublishSample(directory_, "b", {table_}, At(2)), IsOk());
  const auto diffs = directory_.Diff("a", "b", GoOn);
  ASSERT_THAT(diffs, IsOk());
  EXPECT_TRUE(diffs->front().shape_differs);
  EXPECT_EQ(diffs->front().differing_row_count, 0);
}

TEST_F(CheckpointDirectoryTest, AChainIsCompactedIntoOne) {
  Make("a", 1);
  MakeDelta("b", "a", 2);
  MakeDelta("c", "b", 3);
  const auto manifest = directory_.Compact("c", "d", At(4), GoOn);
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->base, "");
  EXPECT_EQ(manifest->step, 5);
  EXPECT_EQ(*ReadSample(directory_, "d", "words"), table_);
  EXPECT_THAT(directory_.Verify("d", GoOn), IsOk());
  const auto compact = directory_.Load("d");
  const auto delta = directory_.Load("c");
  EXPECT_EQ(compact->tables[0].shards[1].first_row_id, 11);
  EXPECT_EQ(compact->tables[0].shards[1].spec, delta->tables[0].shards[1].spec);
  EXPECT_EQ(compact->tables[0].shards[1].trainer_counts,
            delta->tables[0].shards[1].trainer_counts);
  EXPECT_THAT(*directory_.Retain(1, {}), ElementsAre("c", "b", "a"));
  EXPECT_EQ(*ReadSample(directory_, "d", "words"), table_);
}

TEST_F(CheckpointDirectoryTest, ACompactionThatFailsLeavesAWholeOneAlone) {
  Make("a", 1);
  bool other_made = false;
  const auto make_other = [&](int64_t /*done*/, int64_t /*total*/) {
    if (!std::exchange(other_made, true)) Make("b", 2);
    return true;
  };
  EXPECT_FALSE(directory_.Compact("a", "b", At(3), make_other).ok());
  EXPECT_THAT(Whole(), ElementsAre("a", "b"));
  EXPECT_THAT(directory_.Verify("b", GoOn), IsOk());
}

TEST_F(CheckpointDirectoryTest, LongCallsEndWhenTheyAreToldTo) {
  Make("a", 1);
  MakeDelta("b", "a", 2);
  const auto stop = [](int64_t, int64_t) { return false; };
  constexpr auto kCancelled = absl::StatusCode::kCancelled;
  EXPECT_THAT(directory_.Verify("b", stop), StatusIs(kCancelled, ""));
  EXPECT_THAT(directory_.Diff("a", "b", stop), StatusIs(kCancelled, ""));
  EXPECT_THAT(directory_.Compact("b", "c", At(3), stop),
              StatusIs(kCancelled, ""));
  EXPECT_FALSE(*files_.Exists("/disk/c"));
}

TEST_F(CheckpointDirectoryTest, RefusesNamesThatLeaveTheDirectory) {
  for (const std::string name : {"", "..", "a/b", "A", "1a", "a.tmp"}) {
    EXPECT_THAT(directory_.Load(name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("a checkpoint is '", name, "'")));
    EXPECT_THAT(directory_.Delete(name),
                StatusIs(absl::StatusCode::kInvalidArgument, ""));
    EXPECT_THAT(directory_.CreateShardFile({"a", name, 0, 1}, {}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("a table is '", name, "'")));
  }
  EXPECT_THAT(directory_.Load(std::string(64, 'a')),
              StatusIs(absl::StatusCode::kInvalidArgument, ""));
}

}  // namespace
}  // namespace rowhouse::server
