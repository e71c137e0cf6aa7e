// Whatever bit of whatever file of a checkpoint flips, is cut off or goes
// missing, loading and verifying name the file.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/checkpoint/faulty_files.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using testing::IsOk;
using testing::Random;

// `deploy/test.sh --full` sets ROWHOUSE_ALL_SEEDS.
int FlipCount() {
  return std::getenv("ROWHOUSE_ALL_SEEDS") == nullptr ? 100 : 1000;
}

class DamageTest : public ::testing::Test {
 protected:
  // `b`, a delta on `a`, of two tables and with states.
  void SetUp() override {
    SampleTable words = RandomTable("words", 30, random_);
    const SampleTable pairs = RandomTable("pairs", 9, random_);
    Write("a", words, {{0, 13, 30}, 8});
    Write("a", pairs, {{0, 9}, 4});
    Publish("a", {words, pairs}, "");
    SampleWriting delta = {{0, 30}, 3, BaseTable{"a", words.event}};
    words = NextEvent(words, 0.5, random_, delta.changed);
    Write("b", words, delta);
    Write("b", pairs, {{0, 4, 9}, 4});
    Publish("b", {words, pairs}, "a");
    ASSERT_THAT(directory_.Verify("b", GoOn), IsOk());
  }
  void Write(const std::string& checkpoint, const SampleTable& table,
             const SampleWriting& writing) {
    ASSERT_THAT(WriteSample(directory_, checkpoint, table, writing, random_),
                IsOk());
  }
  void Publish(const std::string& checkpoint,
               const std::vector<SampleTable>& tables,
               const std::string& base) {
    for (int64_t rank = 0; rank < 2; ++rank) {
      ASSERT_THAT(
          directory_.WriteTrainerState(checkpoint, rank, SampleState(rank)),
          IsOk());
    }
    ASSERT_THAT(PublishSample(directory_, checkpoint, tables, absl::UnixEpoch(),
                              base, 2),
                IsOk());
  }

  // Expects that `path` is named, and an offset in what it was or at its end.
  void ExpectNamed(const std::string& path, size_t size_bytes) {
    const absl::Status status = directory_.Verify("b", GoOn);
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    const auto details = wire::DetailsOf(status);
    ASSERT_TRUE(details.has_value());
    EXPECT_EQ(details->reason, "DAMAGED");
    EXPECT_EQ(details->metadata.at("file"), path) << status;
    int64_t offset = -1;
    ASSERT_TRUE(absl::SimpleAtoi(details->metadata.at("offset"), &offset));
    EXPECT_GE(offset, 0);
    EXPECT_LE(offset, static_cast<int64_t>(size_bytes));
  }

  Random random_{23};
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
  FaultyFiles files_{"/disk"};
  CheckpointDirectory directory_{files_, "/disk"};
};

TEST_F(DamageTest, AnyBitOfAnyFile) {
  const std::vector<std::string> paths = files_.AllFiles();
  // a: 3 shards, b: 3; each with a manifest; 4 states; 2 manifests.
  ASSERT_EQ(paths.size(), 12U + 8 + 2);
  // Each file in turn, so that small ones have their share.
  for (int i = 0; i < FlipCount(); ++i) {
    const std::string& path = paths[static_cast<size_t>(i) % paths.size()];
    std::string& content = files_.ContentOf(path);
    const auto at = static_cast<size_t>(
        random_.Integer(0, static_cast<int64_t>(content.size()) - 1));
    const auto flip = static_cast<char>(1 << random_.Integer(0, 7));
    SCOPED_TRACE(absl::StrCat(path, " at byte ", at));
    content[at] = static_cast<char>(content[at] ^ flip);
    ExpectNamed(path, content.size());
    if (HasFailure()) return;
    content[at] = static_cast<char>(content[at] ^ flip);
  }
  EXPECT_THAT(directory_.Verify("b", GoOn), IsOk());
}

TEST_F(DamageTest, AnyFileCutLengthenedForeignOrMissing) {
  for (const std::string& path : files_.AllFiles()) {
    SCOPED_TRACE(path);
    std::string& content = files_.ContentOf(path);
    const std::string whole = content;
    for (const std::string& other :
         {std::string(), whole.substr(0, whole.size() / 2),
          whole.substr(0, whole.size() - 1), whole + "\n",
          std::string(whole.size(), 'x'), std::string("{}\n")}) {
      content = other;
      ExpectNamed(path, std::max(whole.size(), other.size()));
    }
    content = whole;
    // Without its manifest a checkpoint is none; `CrashTest` is about that.
    if (path == "/disk/b/manifest.json") continue;
    const auto disk = files_.Copy();
    ASSERT_THAT(files_.Remove(path), IsOk());
    ExpectNamed(path, 0);
    files_ = *disk;
  }
}

TEST_F(DamageTest, FilesOfOtherCheckpointsShardsAndRanks) {
  const auto swapped = [&](const std::string& path, const std::string& other) {
    SCOPED_TRACE(path);
    const std::string whole = files_.ContentOf(path);
    files_.ContentOf(path) = files_.ContentOf(other);
    ExpectNamed(path, std::max(whole.size(), files_.ContentOf(other).size()));
    files_.ContentOf(path) = whole;
  };
  swapped("/disk/b/manifest.json", "/disk/a/manifest.json");
  swapped("/disk/a/words/0-of-2.json", "/disk/a/words/1-of-2.json");
  swapped("/disk/a/words/0-of-2.safetensors",
          "/disk/a/words/1-of-2.safetensors");
  swapped("/disk/b/trainers/0.json", "/disk/b/trainers/1.json");
  swapped("/disk/b/trainers/0.bin", "/disk/b/trainers/1.bin");
}

}  // namespace
}  // namespace rowhouse::server
