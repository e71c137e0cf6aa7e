// Administration of tables.

#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "client/internal/cluster_core.h"
#include "tests/client/in_memory_shard_channel.h"
#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class ClusterTest : public TrainerTest {
 protected:
  // Checks servers `order` in place of 0, 1, 2.
  absl::Status Check(const std::vector<int32_t>& order,
                     std::string_view cluster_id) {
    std::vector<std::unique_ptr<internal::ShardChannel>> channels;
    for (const int32_t server : order) {
      channels.push_back(rowhouse::testing::MakeInMemoryShardChannel(
          servers_, server, nullptr));
    }
    internal::ClusterCore core(std::move(channels), internal::MakeSystemClock(),
                               {});
    return core.CheckServers(cluster_id, core.Context(absl::Seconds(30)));
  }
};

TEST_F(ClusterTest, TheServersAreTheOnesExpected) {
  EXPECT_THAT(Check({0, 1, 2}, "memory"), IsOk());
  EXPECT_THAT(Check({0, 1, 2}, ""), IsOk());
}

TEST_F(ClusterTest, AServerOfAnotherClusterIsNamed) {
  EXPECT_THAT(Check({0, 1, 2}, "prod"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "memory:0: cluster id memory, wanted prod"));
}

TEST_F(ClusterTest, AddressesInAnotherOrderAreNamed) {
  EXPECT_THAT(Check({0, 2, 1}, "memory"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "memory:2: server index 2, wanted 1"));
}

TEST_F(ClusterTest, TooFewAddressesAreNamed) {
  EXPECT_THAT(Check({0, 1}, "memory"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "memory:0: server count 3, wanted 2"));
}

TEST_F(ClusterTest, ATableHasARowRangeOnEachOfItsShards) {
  TableSpec spec = Spec();
  spec.shard_count = 2;
  spec.shard_bounds = {0, 5, 12};
  const absl::StatusOr<TableInfo> made = cluster_->CreateTable("t", spec);
  ASSERT_THAT(made, IsOk());
  const absl::StatusOr<TableInfo> table = cluster_->GetTable("t");
  ASSERT_THAT(table, IsOk());
  ASSERT_EQ(table->shards.size(), 2);
  EXPECT_EQ(table->shards[0].first_row, 0);
  EXPECT_EQ(table->shards[0].end_row, 5);
  EXPECT_EQ(table->shards[1].first_row, 5);
  EXPECT_EQ(table->shards[1].end_row, 12);
  EXPECT_EQ(table->shards[1].address, "memory:1");
  EXPECT_EQ(table->spec, spec);
  EXPECT_EQ(table->event, 0);
}

TEST_F(ClusterTest, TheSameTableAgainIsOkAndAnotherIsNot) {
  MakeTable(Spec());
  EXPECT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
  TableSpec other = Spec();
  other.dim = 3;
  EXPECT_THAT(cluster_->CreateTable("t", other),
              Fails(absl::StatusCode::kAlreadyExists, "TABLE_DIFFERS"));
}

TEST_F(ClusterTest, MoreShardsThanServersAreRefused) {
  TableSpec spec = Spec();
  spec.shard_count = 4;
  EXPECT_THAT(cluster_->CreateTable("t", spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "shard_count 4, wanted one in [1, 3]"));
}

TEST_F(ClusterTest, AveragingIsNeverSilent) {
  TableSpec spec = Spec();
  spec.gradient_reduction.reset();
  EXPECT_THAT(
      cluster_->CreateTable("t", spec),
      StatusIs(absl::StatusCode::kInvalidArgument, "no gradient_reduction"));
}

TEST_F(ClusterTest, TablesAreListedByName) {
  MakeTable(Spec());
  ASSERT_THAT(cluster_->CreateTable("a", Spec(2)), IsOk());
  const auto tables = cluster_->ListTables();
  ASSERT_THAT(tables, IsOk());
  ASSERT_EQ(tables->size(), 2);
  EXPECT_EQ((*tables)[0].name, "a");
  EXPECT_EQ((*tables)[1].name, "t");
  EXPECT_EQ((*tables)[1].shards.size(), 3);
}

TEST_F(ClusterTest, ADeletedTableIsGone) {
  MakeTable(Spec());
  ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  EXPECT_THAT(cluster_->GetTable("t"),
              Fails(absl::StatusCode::kNotFound, "NO_SUCH_TABLE"));
  EXPECT_THAT(cluster_->DeleteTable("t"),
              Fails(absl::StatusCode::kNotFound, "NO_SUCH_TABLE"));
}

TEST_F(ClusterTest, ImportedRowsAreSplitOverShardsAndCalls) {
  TableSpec spec = Spec();
  spec.max_pull_bytes = 8;  // One row a call.
  MakeTable(spec);
  const std::vector<float> rows = {3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8};
  ASSERT_THAT(cluster_->ImportRows("t", 3, std::as_bytes(std::span(rows))),
              IsOk());
  const auto trainer = Join();
  EXPECT_EQ(*PullFloats(*trainer, {2, 3, 4, 7, 8, 9}),
            (std::vector<float>{0, 0, 3, 3, 4, 4, 7, 7, 8, 8, 0, 0}));
}

TEST_F(ClusterTest, ImportedRowsOutOfTheTableAreRefused) {
  MakeTable(Spec());
  const std::vector<float> rows(4);
  EXPECT_THAT(cluster_->ImportRows("t", 11, std::as_bytes(std::span(rows))),
              Fails(absl::StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
}

TEST_F(ClusterTest, AResetTableIsAsNew) {
  MakeTable(Spec());
  const TableDigest fresh = *cluster_->Digest("t");
  {
    const auto trainer = Join();
    ASSERT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 1}), IsOk());
    ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
    ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  }
  EXPECT_NE(*cluster_->Digest("t"), fresh);
  ASSERT_THAT(cluster_->ResetTable("t"), IsOk());
  EXPECT_EQ(*cluster_->Digest("t"), fresh);
}

TEST_F(ClusterTest, ADigestOfAnEventThatIsOverIsRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  EXPECT_EQ(cluster_->Digest("t", 1)->event, 1);
  EXPECT_THAT(cluster_->Digest("t", 0),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(ClusterTest, AnotherTrainerCountHoldsThreeEventsAhead) {
  MakeTable(Spec());
  const auto rank0 = Join();
  EXPECT_EQ(*cluster_->UpdateTrainerCount("t", 2), 3);
  for (const int64_t event : {1, 2}) {
    ASSERT_THAT(rank0->SealAndCommit(event, SignStep()), IsOk());
  }
  ASSERT_THAT(rank0->WaitForEvent(2), IsOk());
  const auto rank1 = Join(1);
  ASSERT_THAT(rank0->SealAndCommit(3, SignStep()), IsOk());
  EXPECT_THAT(rank0->WaitForEvent(3, {.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(rank1->next_event(), 3);
  ASSERT_THAT(rank1->Seal(3), IsOk());
  EXPECT_THAT(rank0->WaitForEvent(3), IsOk());
}

TEST_F(ClusterTest, CancelledCallsEndAndNoneBeginsAnew) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0};
  std::vector<float> out(2);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(out));
  PendingPull pull = trainer->PullAsync(
      row_ids, bytes, {.timeout = absl::Hours(1), .min_event = 1});
  std::optional<absl::Status> read;
  std::thread reader([&] {
    read = cluster_
               ->ReadRows("t", row_ids, bytes,
                          {.timeout = absl::Hours(1), .min_event = 1})
               .status();
  });
  cluster_->CancelCalls();
  reader.join();
  EXPECT_THAT(*read, StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(pull.Wait(), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(trainer->Seal(1), StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(cluster_->GetTable("t"),
              StatusIs(absl::StatusCode::kCancelled, ""));
  cluster_->CancelCalls();  // A repeat does nothing.
  EXPECT_THAT(servers_.Connect()->GetTable("t"), IsOk());
}

}  // namespace
}  // namespace rowhouse::client
