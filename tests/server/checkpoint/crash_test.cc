// Whatever call the machine crashes in, and whatever a crash leaves of what was
// not synced: a checkpoint is there whole, or it is not there.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/faulty_files.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using testing::IsOk;
using testing::Random;

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(seconds); }

// `a`, `b` and the delta `c` on it are whole when a call begins.
class CrashTest : public ::testing::Test {
 protected:
  using Call = std::function<absl::Status(CheckpointDirectory&)>;

  void SetUp() override {
    CheckpointDirectory directory(disk_, "/disk");
    SampleTable table = RandomTable("words", 12, random_);
    Add(directory, "a", table, {{0, 12}, 5}, 1, "");
    table = NextEvent(table, 0.5, random_, unused_);
    Add(directory, "b", table, {{0, 5, 5, 12}, 4}, 2, "");
    SampleWriting delta = {{0, 12}, 2, BaseTable{"b", table.event}};
    table = NextEvent(table, 0.5, random_, delta.changed);
    Add(directory, "c", table, delta, 3, "b");
  }

  void Add(CheckpointDirectory& directory, const std::string& name,
           const SampleTable& table, const SampleWriting& writing,
           int64_t seconds, const std::string& base) {
    ASSERT_THAT(WriteSample(directory, name, table, writing, random_), IsOk());
    ASSERT_THAT(directory.WriteTrainerState(name, 0, SampleState(0)), IsOk());
    ASSERT_THAT(PublishSample(directory, name, {table}, At(seconds), base, 1),
                IsOk());
    tables_[name] = table;
  }

  // Ends `call` at each of its calls of files, by `end`, and looks at what is
  // left: all in `always` are whole; those of `may_go` and `may_come` are whole
  // or not there. A later retention leaves nothing that is not whole.
  void Try(const Call& call, const std::set<std::string>& always,
           const std::set<std::string>& may_go,
           const std::function<void(FaultyFiles&, int64_t)>& end) {
    int64_t points = 0;
    for (bool reached = true; reached; ++points) {
      const auto disk = disk_.Copy();
      CheckpointDirectory directory(*disk, "/disk");
      end(*disk, points);
      const absl::Status status = call(directory);
      reached = disk->call_count() > points;
      // A call that is told nothing of its end has ended well.
      if (!reached) {
        EXPECT_THAT(status, IsOk());
      }
      for (const Survival survival :
           {Survival::kNothing, Survival::kAll, Survival::kSome,
            Survival::kSome, Survival::kSome}) {
        const uint64_t seed = random_.Bits();
        SCOPED_TRACE(absl::StrCat("point ", points, ", survival ",
                                  static_cast<int>(survival), ", seed ", seed));
        const auto after =
            disk->crashed() ? disk->AfterCrash(survival, seed) : disk->Copy();
        Look(*after, always, may_go, reached);
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(points, 5);
  }

  void Look(FaultyFiles& disk, const std::set<std::string>& always,
            const std::set<std::string>& may_go, bool ended_early) {
    CheckpointDirectory directory(disk, "/disk");
    const auto list = directory.List();
    ASSERT_THAT(list, IsOk());
    EXPECT_TRUE(list->damaged.empty()) << list->damaged.front().second;
    std::set<std::string> whole;
    for (const Manifest& manifest : list->whole) {
      whole.insert(manifest.checkpoint);
    }
    for (const std::string& name : always) EXPECT_TRUE(whole.contains(name));
    for (const std::string& name : whole) {
      EXPECT_TRUE(always.contains(name) ||
                  (may_go.contains(name) && ended_early))
          << name;
      ASSERT_THAT(directory.Verify(name, GoOn), IsOk());
      const auto read = ReadSample(directory, name, "words");
      ASSERT_THAT(read, IsOk());
      EXPECT_EQ(*read, tables_.at(name));
      const auto state = directory.ReadTrainerState(name, 0);
      ASSERT_THAT(state, IsOk());
      EXPECT_EQ(*state, SampleState(0));
    }
    // Nothing that is left is in the way of trying again, or stays for ever.
    for (const std::string& name : list->unfinished) {
      EXPECT_THAT(directory.Delete(name), IsOk()) << name;
    }
    for (const std::string& path : disk.AllFiles()) {
      EXPECT_TRUE(whole.contains(path.substr(6, path.find('/', 6) - 6)))
          << path;
    }
  }

  void Crash(const Call& call, const std::set<std::string>& always,
             const std::set<std::string>& may_go) {
    Try(call, always, may_go,
        [](FaultyFiles& disk, int64_t point) { disk.CrashAfter(point); });
  }
  void Fail(const Call& call, const std::set<std::string>& always,
            const std::set<std::string>& may_go) {
    Try(call, always, may_go,
        [](FaultyFiles& disk, int64_t point) { disk.FailAfter(point); });
  }

  // Writes and publishes a delta `d`, as servers and trainers do.
  Call WritingD() {
    SampleTable table = tables_.at("c");
    SampleWriting delta = {{0, 7, 12}, 3, BaseTable{"c", table.event}};
    table = NextEvent(table, 0.6, random_, delta.changed);
    tables_["d"] = table;
    return [this, table, delta](CheckpointDirectory& directory) {
      Random same(31);
      absl::Status status = WriteSample(directory, "d", table, delta, same);
      if (status.ok()) {
        status = directory.WriteTrainerState("d", 0, "first");
      }
      if (status.ok()) {
        status = directory.WriteTrainerState("d", 0, SampleState(0));
      }
      if (!status.ok()) return status;
      return PublishSample(directory, "d", {table}, At(4), "c", 1).status();
    };
  }

  Random random_{22};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
  std::vector<int64_t> unused_;
  FaultyFiles disk_{"/disk"};
  std::map<std::string, SampleTable> tables_;
};

const std::set<std::string> kAll = {"a", "b", "c"};

// Where the call ends well, `d` is there: `Look` is told by `always`.
TEST_F(CrashTest, WritingLeavesTheNewOneWholeOrNotThere) {
  const Call write = WritingD();
  Crash(
      [&](CheckpointDirectory& directory) {
        const absl::Status status = write(directory);
        if (status.ok()) {
          EXPECT_THAT(directory.Load("d"), IsOk());
          // For `Look`, which expects what was there before.
          return directory.Delete("d");
        }
        return status;
      },
      kAll, {"d"});
}

TEST_F(CrashTest, WritingThatFailsLeavesTheNewOneWholeOrNotThere) {
  const Call write = WritingD();
  Fail(
      [&](CheckpointDirectory& directory) {
        const absl::Status status = write(directory);
        if (status.ok()) return directory.Delete("d");
        return status;
      },
      kAll, {"d"});
}

TEST_F(CrashTest, WhatIsPublishedOutlivesACrash) {
  const Call write = WritingD();
  CheckpointDirectory directory(disk_, "/disk");
  ASSERT_THAT(write(directory), IsOk());
  disk_.CrashAfter(0);
  const auto after = disk_.AfterCrash(Survival::kNothing, 0);
  std::set<std::string> all = kAll;
  all.insert("d");
  Look(*after, all, {}, false);
}

TEST_F(CrashTest, DeletingLeavesItWholeOrNotThere) {
  const Call remove = [](CheckpointDirectory& directory) {
    return directory.Delete("c");
  };
  Crash(remove, {"a", "b"}, {"c"});
  Fail(remove, {"a", "b"}, {"c"});
}

TEST_F(CrashTest, RetainingNeverLeavesADeltaWithoutItsBase) {
  CheckpointDirectory directory(disk_, "/disk");
  SampleTable table = RandomTable("words", 12, random_);
  Add(directory, "d", table, {{0, 12}, 5}, 5, "");
  const Call retain = [](CheckpointDirectory& d) {
    return d.Retain(1, {}).status();
  };
  Crash(retain, {"d"}, kAll);
  Fail(retain, {"d"}, kAll);
}

TEST_F(CrashTest, CompactingLeavesTheNewOneWholeOrNotThere) {
  tables_["d"] = tables_.at("c");
  const Call compact = [](CheckpointDirectory& directory) {
    const auto made = directory.Compact("c", "d", At(4), GoOn);
    return made.ok() ? directory.Delete("d") : made.status();
  };
  Crash(compact, kAll, {"d"});
  Fail(compact, kAll, {"d"});
}

TEST_F(CrashTest, AFullDiskLeavesTheOldOnes) {
  const Call write = WritingD();
  const auto roomy = disk_.Copy();
  CheckpointDirectory all(*roomy, "/disk");
  ASSERT_THAT(write(all), IsOk());
  const int64_t used = disk_.used_bytes();
  const int64_t wanted = roomy->used_bytes() - used;
  for (int64_t room = 0; room < wanted; room += 97) {
    SCOPED_TRACE(absl::StrCat("room for ", room));
    // Others take the room that was free when the file was begun.
    for (const bool honest : {true, false}) {
      const auto disk = disk_.Copy();
      disk->SetCapacity(used + room, honest ? std::optional<int64_t>()
                                            : std::optional(wanted));
      CheckpointDirectory directory(*disk, "/disk");
      EXPECT_THAT(write(directory),
                  testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                    " cannot be written: the disk "));
      Look(*disk, kAll, {}, true);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rowhouse::server
