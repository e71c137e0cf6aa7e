// What a cluster tells of itself, whole or not.

#include "rowhouse/survey.h"

#include <memory>
#include <vector>

#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SurveyTest : public TrainerTest {};

TEST_F(SurveyTest, EveryServerTellsItsShards) {
  MakeTable(Spec());
  const std::vector<ServerState> servers = cluster_->Survey();
  ASSERT_THAT(servers, SizeIs(3));
  for (int32_t i = 0; i < 3; ++i) {
    const ServerState& server = servers[i];
    EXPECT_THAT(server.status, IsOk());
    EXPECT_EQ(server.address, "memory:" + std::to_string(i));
    ASSERT_TRUE(server.info.has_value());
    EXPECT_EQ(server.info->server_index, i);
    ASSERT_THAT(server.shards, SizeIs(1));
    EXPECT_EQ(server.shards[0].table, "t");
    EXPECT_EQ(server.shards[0].shard_index, i);
    EXPECT_EQ(server.shards[0].first_row, 4 * i);
    EXPECT_EQ(server.shards[0].end_row, 4 * i + 4);
    EXPECT_EQ(server.shards[0].events.event, 0);
    EXPECT_THAT(server.shards[0].events.sessions, IsEmpty());
  }
}

TEST_F(SurveyTest, AServerThatIsAwayLeavesTheOthers) {
  MakeTable(Spec());
  servers_.SetDown(1, true);
  const std::vector<ServerState> servers = cluster_->Survey();
  ASSERT_THAT(servers, SizeIs(3));
  EXPECT_THAT(servers[0].status, IsOk());
  EXPECT_THAT(servers[0].shards, SizeIs(1));
  EXPECT_TRUE(absl::IsUnavailable(servers[1].status)) << servers[1].status;
  EXPECT_EQ(servers[1].address, "memory:1");
  EXPECT_FALSE(servers[1].info.has_value());
  EXPECT_THAT(servers[2].status, IsOk());
  EXPECT_THAT(servers[2].shards, SizeIs(1));
}

TEST_F(SurveyTest, AServerOfAnotherClusterIsNamed) {
  const std::vector<ServerState> servers =
      cluster_->Survey({.cluster_id = "prod"});
  EXPECT_THAT(servers[2].status,
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "memory:2: cluster id memory, wanted prod"));
  EXPECT_TRUE(servers[2].info.has_value());
}

TEST_F(SurveyTest, OneTableOrNoneCanBeAskedFor) {
  MakeTable(Spec());
  ASSERT_THAT(cluster_->CreateTable("u", Spec()), IsOk());
  EXPECT_THAT(cluster_->Survey()[0].shards, SizeIs(2));
  const auto one = cluster_->Survey({.table = "u"});
  ASSERT_THAT(one[0].shards, SizeIs(1));
  EXPECT_EQ(one[0].shards[0].table, "u");
  EXPECT_THAT(cluster_->Survey({.table = "x"})[0].shards, IsEmpty());
  EXPECT_THAT(cluster_->Survey({.tables = false})[0].shards, IsEmpty());
}

TEST_F(SurveyTest, EventsTellWhoHasSealedAndWhatIsStaged) {
  MakeTable(Spec(/*trainer_count=*/2));
  const std::unique_ptr<Trainer> first = Join(0);
  const std::unique_ptr<Trainer> second = Join(1);
  const std::vector<int64_t> row_ids = {0, 5};
  const std::vector<float> gradients(4, 1.0F);
  ASSERT_THAT(second->Push(1, row_ids, std::as_bytes(std::span(gradients)),
                           {.seal = true}),
              IsOk());
  const std::vector<ServerState> servers = cluster_->Survey();
  const EventState& state = servers[0].shards[0].events;
  ASSERT_THAT(state.open_events, SizeIs(1));
  const OpenEventState& open = state.open_events[0];
  EXPECT_EQ(open.event, 1);
  EXPECT_EQ(open.trainer_count, 2);
  EXPECT_FALSE(open.all_sealed);
  ASSERT_THAT(open.contributions, SizeIs(1));
  EXPECT_EQ(open.contributions[0].rank, 1);
  EXPECT_TRUE(open.contributions[0].sealed);
  EXPECT_EQ(open.contributions[0].part_count, 1);
  EXPECT_EQ(open.contributions[0].row_count, 1);
  ASSERT_THAT(state.sessions, SizeIs(2));
  EXPECT_EQ(state.sessions[1].rank, 1);
  EXPECT_EQ(state.sessions[1].session, 1);
  EXPECT_FALSE(state.sessions[1].lease_expired);
  // A row of two fp32 and its slot.
  EXPECT_GE(state.load.staged_bytes, 16);
  EXPECT_GT(state.load.max_lane_call_count, 0);
  EXPECT_EQ(state.load.parked_call_count, 0);
  EXPECT_GT(state.load.max_parked_call_count, 0);

  ASSERT_THAT(first->SealAndCommit(1, SignStep()), IsOk());
  ASSERT_THAT(second->WaitForEvent(1), IsOk());
  const EventState after = cluster_->Survey()[0].shards[0].events;
  EXPECT_EQ(after.event, 1);
  EXPECT_EQ(after.load.staged_bytes, 0);
  ASSERT_THAT(after.applied_events, SizeIs(1));
  EXPECT_EQ(after.applied_events[0].entry_count, 1);
  EXPECT_EQ(after.applied_events[0].row_count, 1);
  EXPECT_GT(after.applied_events[0].moved_bytes, 0);
  EXPECT_THAT(after.applied_events[0].commit.sessions, ElementsAre(1, 1));
}

TEST_F(SurveyTest, RowsAreReadWithoutASession) {
  MakeTable(Spec());
  const std::unique_ptr<Trainer> trainer = Join(0);
  const std::vector<int64_t> row_ids = {11, 0};
  const std::vector<float> gradients = {-1, 1, 1, -1};
  ASSERT_THAT(trainer->Push(1, row_ids, std::as_bytes(std::span(gradients)),
                            {.seal = true}),
              IsOk());
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  const std::vector<int64_t> wanted = {0, 3, 11};
  std::vector<float> rows(6);
  const absl::StatusOr<int64_t> event = cluster_->ReadRows(
      "t", wanted, std::as_writable_bytes(std::span(rows)), {.min_event = 1});
  ASSERT_THAT(event, IsOk());
  EXPECT_EQ(*event, 1);
  EXPECT_THAT(rows, ElementsAre(-1, 1, 0, 0, 1, -1));
  EXPECT_THAT(trainer->next_event(), 2);
}

TEST_F(SurveyTest, BadReadsAreRefused) {
  MakeTable(Spec());
  std::vector<float> row(2);
  const auto out = std::as_writable_bytes(std::span(row));
  const std::vector<int64_t> last = {11};
  const std::vector<int64_t> past = {12};
  EXPECT_THAT(cluster_->ReadRows("t", past, out),
              Fails(absl::StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(cluster_->ReadRows("t", last, out.first(4)),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  EXPECT_THAT(
      cluster_->ReadRows("t", last, out, {.min_event = 1, .exact_event = 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, "one of them"));
  EXPECT_THAT(cluster_->ReadRows("u", last, out),
              Fails(absl::StatusCode::kNotFound, "NO_SUCH_TABLE"));
}

}  // namespace
}  // namespace rowhouse::client
