// Recorded tables, applied again.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/push_log/push_log_fixture.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::push_log {
namespace {

using rowhouse::testing::InMemoryCluster;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplayTest : public PushLogTest {
 protected:
  // Records 9 events and replays them on so many fresh servers.
  void CheckReplays(const TableSpec& spec, uint64_t seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const RecordReport recorded = RecordTraining(spec, 9, Path("log"), random);
    EXPECT_EQ(recorded.last_event, 9);
    EXPECT_EQ(recorded.start_digest, digests_[0]);
    EXPECT_EQ(recorded.end_digest, digests_[9]);
    EXPECT_THAT(recorded.fault, IsOk());
    EXPECT_GT(recorded.counts.row_count, 0);
    for (const int32_t server_count : {1, 2, 3, 5}) {
      SCOPED_TRACE(server_count);
      InMemoryCluster servers(server_count);
      const std::unique_ptr<Cluster> cluster = servers.Connect();
      const auto replayed =
          Replay(*cluster, "again", Path("log"), {.shard_count = server_count});
      ASSERT_THAT(replayed, IsOk());
      EXPECT_TRUE(replayed->created);
      EXPECT_EQ(replayed->digest, digests_[9]);
      EXPECT_EQ(replayed->digests_equal(), true);
      EXPECT_EQ(*cluster->Digest("again"), digests_[9]);
      EXPECT_EQ(replayed->counts.event_count, 9);
      EXPECT_EQ(replayed->counts.part_count, recorded.counts.part_count);
      EXPECT_EQ(replayed->counts.row_count, recorded.counts.row_count);
      EXPECT_EQ(replayed->counts.skipped_event_count,
                recorded.counts.skipped_event_count);
      EXPECT_THAT(replayed->warning, IsEmpty());
    }
  }
};

TEST_F(ReplayTest, SumsGiveTheSameDigestOnAnyShardCount) {
  CheckReplays(Spec(), 11);
}

TEST_F(ReplayTest, MeansGiveTheSameDigestOnAnyShardCount) {
  CheckReplays(MeanOfBf16(), 12);
}

TEST_F(ReplayTest, DenseTablesWithoutHeadPartsDoToo) {
  CheckReplays(Dense(), 13);
}

TEST_F(ReplayTest, ManySeeds) {
  for (uint64_t seed = 100; seed < 104; ++seed) {
    CheckReplays(seed % 2 == 0 ? Spec() : Dense(), seed);
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
    std::remove(Path("log").c_str());
  }
}

TEST_F(ReplayTest, ALogGoesOnWhereAnotherEnded) {
  Random random(14);
  SCOPED_TRACE(random.Trace());
  RecordTraining(Spec(), 5, Path("first"), random);
  RunningRecord second(*cluster_, Path("second"), {.last_event = 9});
  Train(6, 9, random);
  ASSERT_THAT(second.Wait(), IsOk());
  EXPECT_EQ(second.Wait()->start_event, 5);
  EXPECT_EQ(second.Wait()->start_digest, digests_[5]);

  InMemoryCluster servers(2);
  const std::unique_ptr<Cluster> cluster = servers.Connect();
  const ReplayOptions on_two{.shard_count = 2};
  EXPECT_THAT(Replay(*cluster, "u", Path("second"), on_two),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "first replay the one that ends with it"));
  ASSERT_THAT(Replay(*cluster, "u", Path("first"), on_two), IsOk());
  const auto replayed = Replay(*cluster, "u", Path("second"), on_two);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_FALSE(replayed->created);
  EXPECT_EQ(replayed->digest, digests_[9]);
  EXPECT_EQ(replayed->digests_equal(), true);
}

TEST_F(ReplayTest, ATableThatIsNotAsAtTheStartIsRefused) {
  Random random(15);
  RecordTraining(Spec(), 2, Path("log"), random);
  InMemoryCluster servers(3);
  const std::unique_ptr<Cluster> cluster = servers.Connect();

  ASSERT_THAT(cluster->CreateTable("imported", Spec()), IsOk());
  const std::vector<float> row = {1, 2, 3};
  ASSERT_THAT(cluster->ImportRows("imported", 4, std::as_bytes(std::span(row))),
              IsOk());
  EXPECT_THAT(Replay(*cluster, "imported", Path("log")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "import the rows that the recorded table had"));
  ASSERT_THAT(cluster->ResetTable("imported"), IsOk());
  EXPECT_THAT(Replay(*cluster, "imported", Path("log")), IsOk());
  EXPECT_THAT(Replay(*cluster, "imported", Path("log")),
              StatusIs(absl::StatusCode::kFailedPrecondition, "reset it"));

  TableSpec other = Spec();
  other.gradient_reduction = GradientReduction::kMean;
  ASSERT_THAT(cluster->CreateTable("mean", other), IsOk());
  EXPECT_THAT(
      Replay(*cluster, "mean", Path("log")),
      StatusIs(absl::StatusCode::kFailedPrecondition, "gradient_reduction"));
  EXPECT_EQ(cluster->GetTable("mean")->event, 0);
}

TEST_F(ReplayTest, ImportedRowsAreImportedAgainFirst) {
  Random random(16);
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  MakeTable(Spec());
  ASSERT_THAT(cluster_->ImportRows("t", 12, std::as_bytes(std::span(rows))),
              IsOk());
  RunningRecord record(*cluster_, Path("log"), {.last_event = 3});
  Train(1, 3, random);
  ASSERT_THAT(record.Wait(), IsOk());

  InMemoryCluster servers(1);
  const std::unique_ptr<Cluster> cluster = servers.Connect();
  TableSpec spec = Spec();
  spec.shard_count = 1;
  ASSERT_THAT(cluster->CreateTable("u", spec), IsOk());
  ASSERT_THAT(cluster->ImportRows("u", 12, std::as_bytes(std::span(rows))),
              IsOk());
  const auto replayed = Replay(*cluster, "u", Path("log"));
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->digest, digests_[3]);
}

TEST_F(ReplayTest, TooFewServersAreToldWithAShardCountThatFits) {
  Random random(20);
  RecordTraining(Spec(), 1, Path("log"), random);
  InMemoryCluster servers(2);
  const std::unique_ptr<Cluster> cluster = servers.Connect();
  EXPECT_THAT(Replay(*cluster, "u", Path("log")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a table of 3 shards does not fit on 2 servers; give "
                       "--shards=2"));
}

TEST_F(ReplayTest, ACutLogIsAppliedUpToTheCut) {
  Random random(17);
  RecordTraining(Spec(), 6, Path("log"), random);
  const std::string bytes = ReadFile(Path("log"));
  WriteFile(Path("cut"), bytes.substr(0, bytes.size() * 2 / 3));
  const auto info = Inspect(Path("cut"));
  ASSERT_THAT(info, IsOk());
  ASSERT_GT(info->last_event, 0);
  ASSERT_LT(info->last_event, 6);
  const auto replayed = Replay(*cluster_, "u", Path("cut"));
  ASSERT_THAT(replayed, IsOk());
  EXPECT_FALSE(replayed->complete);
  EXPECT_EQ(replayed->last_event, info->last_event);
  EXPECT_EQ(replayed->digest, digests_[info->last_event]);
  EXPECT_EQ(replayed->digests_equal(), std::nullopt);
  EXPECT_THAT(replayed->warning, HasSubstr("cut off after event"));
}

TEST_F(ReplayTest, NothingIsAppliedOfADamagedLog) {
  Random random(18);
  RecordTraining(Spec(), 3, Path("log"), random);
  std::string bytes = ReadFile(Path("log"));
  bytes[bytes.size() - 20] ^= 1;
  WriteFile(Path("log"), bytes);
  EXPECT_THAT(Replay(*cluster_, "u", Path("log")),
              StatusIs(absl::StatusCode::kDataLoss, "offset"));
  EXPECT_THAT(cluster_->GetTable("u"),
              StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_F(ReplayTest, AReplayStopsBetweenEvents) {
  Random random(19);
  RecordTraining(Spec(), 5, Path("log"), random);
  std::stop_source stop;
  std::vector<int64_t> events;
  const auto replayed = Replay(
      *cluster_, "u", Path("log"),
      {.stop = stop.get_token(), .progress = [&](const ReplayProgress& now) {
         events.push_back(now.event);
         EXPECT_EQ(now.log_event_count, 5);
         if (now.event == 2) stop.request_stop();
       }});
  ASSERT_THAT(replayed, IsOk());
  EXPECT_THAT(events, ::testing::ElementsAre(1, 2));
  EXPECT_EQ(replayed->last_event, 2);
  EXPECT_EQ(replayed->digest, digests_[2]);
}

}  // namespace
}  // namespace rowhouse::client::push_log
