#include "client/cli/table_view.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Table `t` of 2 trainers on 2 shards: event 4 is applied, and rank 1 has
// sealed event 5 on shard 0 alone.
std::vector<client::ServerState> Servers() {
  std::vector<client::ServerState> servers(2);
  for (int32_t i = 0; i < 2; ++i) {
    client::ShardState& shard = servers[i].shards.emplace_back();
    shard.table = "t";
    shard.spec.shard_count = 2;
    shard.spec.trainer_count = 2;
    shard.shard_index = i;
    shard.reserved_bytes = 100;
    shard.events.event = 4;
    shard.events.sessions = {{0, 3, absl::Seconds(1 + i), false},
                             {1, 2, absl::Seconds(9), i == 1}};
    shard.events.open_events = {{5, 2, false, {{1, 2, i == 0, 1, 10, 0, 0}}}};
    shard.events.applied_events = {{4, {{3, 2}, {}}, 20, 15, 1, 1000}};
  }
  return servers;
}

TEST(TableViewTest, ATableIsPutTogether) {
  const auto servers = Servers();
  const std::vector<TableView> tables = TablesOf(servers);
  ASSERT_THAT(tables, SizeIs(1));
  EXPECT_EQ(tables[0].name, "t");
  EXPECT_TRUE(tables[0].whole());
  EXPECT_EQ(tables[0].event, 4);
  EXPECT_EQ(tables[0].reserved_bytes(), 200);
}

TEST(TableViewTest, ARankIsAwaitedUntilItHasSealedEverywhere) {
  const auto servers = Servers();
  const std::vector<OpenEventView> events = TablesOf(servers)[0].OpenEvents();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].event, 5);
  EXPECT_THAT(events[0].Awaited(2), ElementsAre(0, 1));
  ASSERT_THAT(events[0].ranks, SizeIs(2));
  const RankView& silent = events[0].ranks[0];
  EXPECT_EQ(silent.begun_on, 0);
  EXPECT_EQ(silent.session, 3);
  EXPECT_EQ(silent.idle, absl::Seconds(2));
  const RankView& half = events[0].ranks[1];
  EXPECT_EQ(half.sealed_on, 1);
  EXPECT_EQ(half.begun_on, 2);
  EXPECT_EQ(half.row_count, 20);
  EXPECT_TRUE(half.lease_expired);
}

TEST(TableViewTest, AShardThatIsAheadHasSealed) {
  auto servers = Servers();
  servers[0].shards[0].events.event = 5;
  servers[0].shards[0].events.open_events.clear();
  const TableView table = TablesOf(servers)[0];
  EXPECT_EQ(table.event, 4);
  const std::vector<OpenEventView> events = table.OpenEvents();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].ranks[1].sealed_on, 1);
}

TEST(TableViewTest, TheNextEventIsThereBeforeAnyoneBegins) {
  auto servers = Servers();
  for (auto& server : servers) server.shards[0].events.open_events.clear();
  servers[0].shards[0].trainer_counts = {{1, 2}, {5, 3}};
  const std::vector<OpenEventView> events = TablesOf(servers)[0].OpenEvents();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].event, 5);
  EXPECT_THAT(events[0].Awaited(2), ElementsAre(0, 1, 2));
}

TEST(TableViewTest, AppliedEventsAreSummed) {
  const auto servers = Servers();
  const std::vector<AppliedEventView> events =
      TablesOf(servers)[0].AppliedEvents();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].event, 4);
  EXPECT_EQ(events[0].applied_on, 2);
  EXPECT_EQ(events[0].entry_count, 40);
  EXPECT_EQ(events[0].row_count, 30);
  EXPECT_EQ(events[0].untouched_row_count, 2);
  EXPECT_EQ(events[0].moved_bytes, 2000);
}

TEST(TableViewTest, HalfATableIsNotWhole) {
  auto servers = Servers();
  servers[1].shards.clear();
  EXPECT_FALSE(TablesOf(servers)[0].whole());
  servers[0].shards.clear();
  EXPECT_THAT(TablesOf(servers), IsEmpty());
}

TEST(TableViewTest, RanksAreShortened) {
  EXPECT_EQ(Ranks({}), "");
  EXPECT_EQ(Ranks({3}), "3");
  EXPECT_EQ(Ranks({0, 2, 3, 4, 7, 8}), "0, 2-4, 7-8");
}

}  // namespace
}  // namespace rowhouse::cli
