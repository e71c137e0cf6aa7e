// One table over two servers, from creation to digest, as a client in any
// language does it.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;

// [10, 2] fp32, rows 0..4 and 5..9.
constexpr char kSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 2 initializer { zeros {} }
  trainer_count: 2 gradient_reduction: GRADIENT_REDUCTION_SUM
  max_contribution_row_count: 8 max_part_count: 4 sparse {})";

constexpr char kTable[] = "tables/t";

// v = mean square; u = step_size * gradient / (sqrt(v) + eps).
constexpr char kUpdate[] = R"(
  row_adam { step_size: 1 beta2: 0 gradient_scale: 1 })";

std::string SingleSpec() {
  return absl::StrReplaceAll(kSpec, {{"shard_count: 2", "shard_count: 1"},
                                     {"trainer_count: 2", "trainer_count: 1"}});
}

v1::PushGradientsRequest Part(int32_t rank, const std::vector<int64_t>& row_ids,
                              const std::vector<float>& rows) {
  auto message = FromText<v1::PushGradientsRequest>(
      absl::StrCat("header { table: 'tables/t' trainer { trainer_rank: ", rank,
                   " session: 1 } event: 1 dtype: DATA_TYPE_FP32 row_count: ",
                   row_ids.size(), " }"));
  message.mutable_row_ids()->Add(row_ids.begin(), row_ids.end());
  message.set_rows(Fp32(rows));
  return message;
}

class VerticalSliceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (TestServer* server : {&first_, &second_}) {
      ASSERT_THAT(server->CreateTable(kTable, kSpec), IsOk());
      ASSERT_THAT(server->OpenSession(kTable, 0, 1), IsOk());
      ASSERT_THAT(server->OpenSession(kTable, 1, 1), IsOk());
    }
  }

  void SealAndCommit(TestServer& server, const std::string& update) {
    ASSERT_THAT(server.Seal(kTable, 0, 1, 1, 1), IsOk());
    ASSERT_THAT(server.Seal(kTable, 1, 1, 1, 1), IsOk());
    ASSERT_THAT(server.Commit(absl::StrCat(
                    "table: 'tables/t' trainer { session: 1 } event: 1 "
                    "commit { sessions: [1, 1] ",
                    update, " }")),
                IsOk());
  }

  TestServer first_{0, 2};
  TestServer second_{1, 2};
};

TEST_F(VerticalSliceTest, AnEventIsAppliedOnBothShards) {
  ASSERT_THAT(first_.Push({Part(0, {4, 0}, {1, 1, 2, 2})}), IsOk());
  ASSERT_THAT(first_.Push({Part(1, {4}, {1, 1})}), IsOk());
  ASSERT_THAT(second_.Push({Part(0, {}, {})}), IsOk());
  ASSERT_THAT(second_.Push({Part(1, {9}, {-3, -3})}), IsOk());
  SealAndCommit(first_, kUpdate);
  SealAndCommit(second_, kUpdate);

  const auto first =
      first_.Pull("table: 'tables/t' row_ids: [0, 1, 4, 4] exact_event: 1");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->event, 1);
  EXPECT_EQ(first->row_count, 4);
  EXPECT_THAT(first->Floats(), ElementsAre(-1, -1, 0, 0, -1, -1, -1, -1));
  const auto second =
      second_.Pull("table: 'tables/t' row_ids: [9, 5] min_event: 1");
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(second->Floats(), ElementsAre(1, 1, 0, 0));
}

TEST_F(VerticalSliceTest, TheDigestTellsASkippedEventFromAnAppliedOne) {
  const auto before = first_.Digest(kTable, 0);
  ASSERT_THAT(before, IsOk());
  ASSERT_THAT(first_.Push({Part(0, {4}, {1, 1})}), IsOk());
  ASSERT_THAT(first_.Push({Part(1, {}, {})}), IsOk());
  SealAndCommit(first_, "skip {}");
  const auto after = first_.Digest(kTable, 1);
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->row_sum(), before->row_sum());
  EXPECT_NE(after->history_sum(), before->history_sum());
}

TEST_F(VerticalSliceTest, ARepeatedPartIsAnsweredAgainAndCountsOnce) {
  const v1::PushGradientsRequest part = Part(0, {4}, {1, 1});
  const auto first = first_.Push({part});
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE(first->duplicate());
  const auto again = first_.Push({part});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->duplicate());
  EXPECT_EQ(again->row_count(), 1);
}

TEST_F(VerticalSliceTest, HandlesNameTheRowsOfAPull) {
  const auto pulled = first_.Pull(
      "table: 'tables/t' row_ids: [2, 3] return_handle: true training: true "
      "trainer { session: 1 }");
  ASSERT_THAT(pulled, IsOk());
  ASSERT_GT(pulled->handle, 0);
  v1::PushGradientsRequest part = Part(0, {}, {5, 5, 7, 7});
  part.mutable_header()->set_row_count(2);
  part.mutable_header()->add_handles(pulled->handle);
  ASSERT_THAT(first_.Push({part}), IsOk());
  ASSERT_THAT(first_.Push({Part(1, {}, {})}), IsOk());
  SealAndCommit(first_, kUpdate);
  const auto after = first_.Pull("table: 'tables/t' row_ids: [2, 3, 4]");
  ASSERT_THAT(after, IsOk());
  EXPECT_THAT(after->Floats(), ElementsAre(-1, -1, -1, -1, 0, 0));
}

TEST_F(VerticalSliceTest, TheStateTellsWhatLandedAndWhatWasApplied) {
  ASSERT_THAT(first_.Push({Part(0, {4, 0}, {1, 1, 2, 2})}), IsOk());
  const auto state = [this] {
    return Invoke(first_.events(), &v1::EventService::Stub::GetEventState,
                  FromText<v1::GetEventStateRequest>("table: 'tables/t'"));
  };
  auto open = state();
  ASSERT_THAT(open, IsOk());
  ASSERT_EQ(open->open_events_size(), 1);
  ASSERT_EQ(open->open_events(0).contributions_size(), 1);
  EXPECT_EQ(open->open_events(0).contributions(0).row_count(), 2);
  EXPECT_EQ(open->open_events(0).trainer_count(), 2);
  EXPECT_EQ(open->sessions_size(), 2);
  ASSERT_THAT(first_.Push({Part(1, {}, {})}), IsOk());
  SealAndCommit(first_, kUpdate);
  ASSERT_THAT(first_.Digest(kTable, 1), IsOk());
  auto applied = state();
  ASSERT_THAT(applied, IsOk());
  EXPECT_EQ(applied->event(), 1);
  ASSERT_EQ(applied->applied_events_size(), 1);
  EXPECT_EQ(applied->applied_events(0).row_count(), 2);
  EXPECT_EQ(applied->applied_events(0).commit().row_adam().step_size(), 1);
  EXPECT_THAT(applied->applied_events(0).commit().sessions(),
              ElementsAre(1, 1));
}

TEST_F(VerticalSliceTest, StatisticsAreExactSumsByExponent) {
  ASSERT_THAT(first_.Push({Part(0, {4}, {1, 1})}), IsOk());
  ASSERT_THAT(first_.Push({Part(1, {}, {})}), IsOk());
  ASSERT_THAT(first_.Seal(kTable, 0, 1, 1, 1), IsOk());
  ASSERT_THAT(first_.Seal(kTable, 1, 1, 1, 1), IsOk());
  const auto statistics = Invoke(
      first_.events(), &v1::EventService::Stub::GetEventStatistics,
      FromText<v1::GetEventStatisticsRequest>("table: 'tables/t' event: 1"));
  ASSERT_THAT(statistics, IsOk());
  ASSERT_EQ(statistics->significand_sums_size(), 255);
  // The row's sum of squares is 2: biased exponent 128, significand 2^23.
  EXPECT_EQ(statistics->significand_sums(128), 1 << 23);
  EXPECT_EQ(statistics->row_count(), 1);
}

TEST_F(VerticalSliceTest, ImportedRowsAreServed) {
  auto message = FromText<v1::ImportRowsRequest>(
      "header { table: 'tables/t' first_row_id: 8 row_count: 2 "
      "dtype: DATA_TYPE_FP32 }");
  message.set_rows(Fp32({1, 2}));
  v1::ImportRowsRequest rest;
  rest.set_first_row(1);
  rest.set_rows(Fp32({3, 4}));
  const auto imported = second_.Import({message, rest});
  ASSERT_THAT(imported, IsOk());
  EXPECT_EQ(imported->row_count(), 2);
  const auto pulled = second_.Pull("table: 'tables/t' row_ids: [9, 8]");
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(pulled->Floats(), ElementsAre(3, 4, 1, 2));
}

TEST(SingleShardTest, APushMaySealAndCommit) {
  TestServer server;
  ASSERT_THAT(server.CreateTable(kTable, SingleSpec()), IsOk());
  ASSERT_THAT(server.OpenSession(kTable, 0, 1), IsOk());
  v1::PushGradientsRequest part = Part(0, {9}, {2, 2});
  part.mutable_header()->set_seal_part_count(1);
  *part.mutable_header()->mutable_commit() =
      FromText<v1::EventCommit>(absl::StrCat("sessions: 1 ", kUpdate));
  ASSERT_THAT(server.Push({part}), IsOk());
  const auto pulled =
      server.Pull("table: 'tables/t' row_ids: 9 exact_event: 1");
  ASSERT_THAT(pulled, IsOk());
  EXPECT_THAT(pulled->Floats(), ElementsAre(-1, -1));
}

TEST(SingleShardTest, EmptyCallsAreValid) {
  TestServer server;
  ASSERT_THAT(server.CreateTable(kTable, SingleSpec()), IsOk());
  ASSERT_THAT(server.OpenSession(kTable, 0, 1), IsOk());
  const auto pulled = server.Pull("table: 'tables/t'");
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->message_count, 1);
  EXPECT_EQ(pulled->row_count, 0);
  EXPECT_THAT(server.Push({Part(0, {}, {})}), IsOk());
  EXPECT_THAT(server.Import({FromText<v1::ImportRowsRequest>(
                  "header { table: 'tables/t' first_row_id: 10 "
                  "dtype: DATA_TYPE_FP32 }")}),
              IsOk());
  EXPECT_THAT(server.Seal(kTable, 0, 1, 2, 0), IsOk());
}

}  // namespace
}  // namespace rowhouse::testing
