#include "server/checkpoint/manifest.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/sealed_json.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using testing::IsOk;
using testing::StatusIs;

constexpr auto kDamaged = absl::StatusCode::kDataLoss;
constexpr uint64_t kLarge = 0xFEDCBA9876543210;  // No double has it.

ShardManifest Shard() {
  ShardManifest manifest;
  manifest.table = "words";
  manifest.shard_index = 1;
  manifest.shard_count = 3;
  manifest.first_row_id = 10;
  manifest.row_count = 7;
  manifest.event = 12;
  manifest.spec = {{"dim", 4}, {"bound", 0.1}, {"name", "w\u00f6rter"}};
  manifest.trainer_counts = {{1, 2}, {9, 3}};
  manifest.base = BaseTable{"earlier", 8};
  manifest.file = {
      3, 2, {{"weights", "BF16", 4, 8}}, {{"row_ids", "I64", {3}}}};
  manifest.summary = {4096 + 24 + 24, kLarge, {kLarge + 1}, {{1, kLarge + 2}}};
  manifest.statistics = {4144, 0.25, 2, 1e-3};
  return manifest;
}

Manifest Whole() {
  Manifest manifest;
  manifest.checkpoint = "later";
  manifest.step = 1200;
  manifest.created_time =
      absl::FromUnixSeconds(1'800'000'000) + absl::Nanoseconds(7);
  manifest.base = "earlier";
  manifest.tables = {
      {"words", 12, BaseTable{"earlier", 8}, {{"words/0-of-1.json", kLarge}}}};
  manifest.trainer_states = {{0, 5, kLarge}, {1, 0, 2}};
  return manifest;
}

TEST(ManifestTest, AShardsOneIsReadAsItWasWritten) {
  const auto read = ParseShardManifest("f", ToText(Shard()));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, Shard());
}

TEST(ManifestTest, ACheckpointsOneIsReadAsItWasWritten) {
  const std::string text = ToText(Whole());
  const auto read = ParseManifest("f", text);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, Whole());
  EXPECT_NE(text.find("\"created_time\": \"2027-01-15T08:00:00.000000007"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"checksum\": \"fedcba9876543210\""), std::string::npos);
}

TEST(ManifestTest, ATrainersOneIsReadAsItWasWritten) {
  const TrainerStateEntry state = {3, 100, kLarge};
  const auto read = ParseTrainerState("f", ToText(state));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, state);
}

TEST(ManifestTest, EveryBitCounts) {
  const std::string text = ToText(Whole());
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      ASSERT_THAT(ParseManifest("a/manifest.json", flipped),
                  StatusIs(kDamaged, "a/manifest.json, at byte "))
          << "byte " << at << ", bit " << bit;
    }
  }
}

TEST(ManifestTest, EveryEndCounts) {
  const std::string text = ToText(Shard());
  for (size_t size = 0; size < text.size(); ++size) {
    ASSERT_THAT(ParseShardManifest("f", text.substr(0, size)),
                StatusIs(kDamaged, "f, at byte "))
        << size;
  }
  EXPECT_THAT(ParseShardManifest("f", text + " "), StatusIs(kDamaged, ""));
}

TEST(ManifestTest, AnotherTextOfTheSameValuesIsRefused) {
  const std::string text = ToText(Whole());
  EXPECT_THAT(
      ParseManifest("f", absl::StrReplaceAll(text, {{"\": ", "\":  "}})),
      StatusIs(kDamaged, "f, at byte "));
}

TEST(ManifestTest, SaysWhatALaterVersionIs) {
  Json json = {{"format", "rowhouse-checkpoint"}, {"version", 2}};
  EXPECT_THAT(ParseManifest("f", Seal(json)),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "f cannot be read: it is of version 2; known is 1"));
  json["version"] = 1;
  EXPECT_THAT(ParseManifest("f", Seal(json)), StatusIs(kDamaged, "checkpoint"));
  EXPECT_THAT(ParseShardManifest("f", ToText(Whole())),
              StatusIs(kDamaged, "it is a rowhouse-checkpoint"));
}

// What is sealed and yet of no shard: another writer's fault.
TEST(ManifestTest, RefusesWhatIsOfNoShard) {
  const auto parsed = [](ShardManifest manifest) {
    return ParseShardManifest("f", ToText(manifest));
  };
  ShardManifest manifest = Shard();
  manifest.file.sides.clear();
  manifest.summary.side_checksums.clear();
  EXPECT_THAT(parsed(manifest), StatusIs(kDamaged, "a base or row ids"));
  manifest = Shard();
  manifest.summary.block_checksums = {{1}};
  EXPECT_THAT(parsed(manifest), StatusIs(kDamaged, "as blocks"));
  manifest = Shard();
  manifest.shard_index = 3;
  EXPECT_THAT(parsed(manifest), StatusIs(kDamaged, "out of range"));
  manifest = Shard();
  manifest.row_count = 2;
  EXPECT_THAT(parsed(manifest),
              StatusIs(kDamaged, "the file has 3 rows, the shard 2"));
  manifest = Shard();
  manifest.summary.size_bytes = 47;
  EXPECT_THAT(parsed(manifest), StatusIs(kDamaged, "smaller than its tensors"));
  manifest = Shard();
  manifest.file.columns[0].row_bytes = 9;
  EXPECT_THAT(parsed(manifest), StatusIs(kDamaged, "9 bytes a row"));
  Manifest whole = Whole();
  whole.base = "other";
  EXPECT_THAT(ParseManifest("f", ToText(whole)),
              StatusIs(kDamaged, "table words has another base"));
}

TEST(ManifestTest, ChecksumsAreXxh3) {
  // xxh3_64_hexdigest of the Python package xxhash.
  EXPECT_EQ(ChecksumText(ChecksumOf("")), "2d06800538d394c2");
  EXPECT_EQ(ParseChecksum("2d06800538d394c2"), 0x2d06800538d394c2);
  EXPECT_EQ(ParseChecksum("2D06800538d394c2"), std::nullopt);
  EXPECT_EQ(ParseChecksum("2d06800538d394c"), std::nullopt);
  EXPECT_EQ(ParseChecksum(" 2d06800538d394c"), std::nullopt);
  EXPECT_EQ(ParseChecksum("zd06800538d394c2"), std::nullopt);
}

}  // namespace
}  // namespace rowhouse::server
