// Tables: creation, listing, memory, updates, and gradients that are not
// finite.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;
using Tables = v1::TableService::Stub;

constexpr char kSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 max_pull_bytes: 1048576 sparse {})";

std::string With(const std::string& from, const std::string& to) {
  return absl::StrReplaceAll(kSpec, {{from, to}});
}

TEST(CreateTableTest, TheSameSpecAgainIsOk) {
  TestServer server;
  v1::CreateTableRequest request;
  request.set_name("tables/t");
  *request.mutable_spec() = FromText<v1::TableSpec>(kSpec);
  const auto first = Invoke(server.tables(), &Tables::CreateTable, request);
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE(first->existed());
  // Written out: the defaults, and the bounds of the even split.
  v1::TableSpec& spec = *request.mutable_spec();
  spec.mutable_initializer()->mutable_zeros();
  spec.mutable_sparse()->set_non_finite_policy(v1::NON_FINITE_POLICY_REJECT);
  spec.add_shard_bounds(0);
  spec.add_shard_bounds(10);
  const auto again = Invoke(server.tables(), &Tables::CreateTable, request);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->existed());
  EXPECT_THAT(again->table().shard_bounds(), ElementsAre(0, 10));
}

TEST(CreateTableTest, AServerWithoutAShardSaysSo) {
  TestServer second(1, 2);
  const absl::Status status = second.CreateTable("tables/t", kSpec).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kFailedPrecondition, "has 1 shards"));
  EXPECT_EQ(wire::ReasonOf(status), "NOT_PLACED");
}

TEST(CreateTableTest, ExplicitBoundsMayLeaveAShardEmpty) {
  TestServer second(1, 2);
  const auto table =
      second.CreateTable("tables/t", With("shard_count: 1",
                                          "shard_count: 2 "
                                          "shard_bounds: [0, 10, 10]"));
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->shard_index(), 1);
  const auto pulled = second.Pull("table: 'tables/t'");
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->row_count, 0);
}

TEST(CreateTableTest, ADeletedTablesMemoryIsFree) {
  TestServer server;
  const auto table = server.CreateTable("tables/t", kSpec);
  ASSERT_THAT(table, IsOk());
  EXPECT_GT(table->reserved_bytes(), 1 << 20);
  const auto reserved = [&] {
    return Invoke(server.servers(), &v1::ServerService::Stub::GetServer,
                  v1::GetServerRequest())
        ->reserved_bytes();
  };
  EXPECT_EQ(reserved(), table->reserved_bytes());
  v1::DeleteTableRequest request;
  request.set_name("tables/t");
  ASSERT_THAT(Invoke(server.tables(), &Tables::DeleteTable, request), IsOk());
  // The next creation comes after the memory is given back.
  ASSERT_THAT(server.CreateTable("tables/u", kSpec), IsOk());
  EXPECT_EQ(reserved(), table->reserved_bytes());
}

TEST(CreateTableTest, ConfiguredTablesAreThere) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.add_tables()->set_name("tables/t");
  *config.mutable_tables(0)->mutable_spec() = FromText<v1::TableSpec>(kSpec);
  TestServer server(config);
  EXPECT_THAT(server.Pull("table: 'tables/t' row_ids: 9"), IsOk());
}

TEST(ListTablesTest, PagesAreByNameAndComplete) {
  TestServer server;
  for (const char* name : {"tables/b", "tables/c", "tables/a"}) {
    ASSERT_THAT(server.CreateTable(name, kSpec), IsOk());
  }
  v1::ListTablesRequest request;
  request.set_page_size(2);
  const auto first = Invoke(server.tables(), &Tables::ListTables, request);
  ASSERT_THAT(first, IsOk());
  ASSERT_EQ(first->tables_size(), 2);
  EXPECT_EQ(first->tables(0).name(), "tables/a");
  EXPECT_EQ(first->tables(1).name(), "tables/b");
  request.set_page_token(first->next_page_token());
  const auto second = Invoke(server.tables(), &Tables::ListTables, request);
  ASSERT_THAT(second, IsOk());
  ASSERT_EQ(second->tables_size(), 1);
  EXPECT_EQ(second->tables(0).name(), "tables/c");
  EXPECT_EQ(second->next_page_token(), "");
}

TEST(ListTablesTest, SignPoolsAreReturnedByGetOnly) {
  TestServer server;
  ASSERT_THAT(server.CreateTable("tables/t", absl::StrCat(kSpec,
                                                          " ngram { "
                                                          "sign_row_count: 1 "
                                                          "sign_words: "
                                                          "'12345678' }")),
              IsOk());
  const auto listed =
      Invoke(server.tables(), &Tables::ListTables, v1::ListTablesRequest());
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(listed->tables(0).spec().ngram().sign_row_count(), 1);
  EXPECT_EQ(listed->tables(0).spec().ngram().sign_words(), "");
  const auto table = Invoke(server.tables(), &Tables::GetTable,
                            FromText<v1::GetTableRequest>("name: 'tables/t'"));
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->table().spec().ngram().sign_words(), "12345678");
}

TEST(UpdateTableTest, MoreTrainersReserveMoreMemory) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.set_memory_limit_bytes(64 << 20);
  TestServer server(config);
  const auto table = server.CreateTable("tables/t", kSpec);
  ASSERT_THAT(table, IsOk());
  const auto more =
      Invoke(server.tables(), &Tables::UpdateTable,
             FromText<v1::UpdateTableRequest>(
                 "name: 'tables/t' trainer_count: 2 from_event: 3"));
  ASSERT_THAT(more, IsOk());
  EXPECT_GT(more->table().reserved_bytes(), table->reserved_bytes());
  const auto too_many =
      Invoke(server.tables(), &Tables::UpdateTable,
             FromText<v1::UpdateTableRequest>(
                 "name: 'tables/t' trainer_count: 4096 from_event: 4"));
  EXPECT_EQ(wire::ReasonOf(too_many.status()), "MEMORY");
  const auto after = Invoke(server.tables(), &Tables::GetTable,
                            FromText<v1::GetTableRequest>("name: 'tables/t'"));
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->table().reserved_bytes(), more->table().reserved_bytes());
  EXPECT_EQ(after->table().trainer_counts_size(), 2);
}

// Pushes one row to row 3 of tables/t, commits, and returns the row after it.
std::vector<float> RowAfter(TestServer& server, const std::string& policy,
                            const std::vector<float>& first,
                            const std::vector<float>& second) {
  EXPECT_THAT(
      server.CreateTable("tables/t",
                         With("sparse {}", absl::StrCat("sparse { "
                                                        "non_finite_policy: ",
                                                        policy, " }"))),
      IsOk());
  EXPECT_THAT(server.OpenSession("tables/t", 0, 1), IsOk());
  auto part = FromText<v1::PushGradientsRequest>(
      "header { table: 'tables/t' trainer { session: 1 } event: 1 "
      "dtype: DATA_TYPE_FP32 row_count: 2 seal_part_count: 1 "
      "commit { sessions: 1 row_adam { step_size: 1 gradient_scale: 1 } } } "
      "row_ids: [3, 3]");
  part.set_rows(Fp32(first) + Fp32(second));
  EXPECT_THAT(server.Push({part}), IsOk());
  const auto pulled =
      server.Pull("table: 'tables/t' row_ids: 3 exact_event: 1");
  EXPECT_THAT(pulled, IsOk());
  return pulled->Floats();
}

int64_t UntouchedRows(TestServer& server) {
  const auto state =
      Invoke(server.events(), &v1::EventService::Stub::GetEventState,
             FromText<v1::GetEventStateRequest>("table: 'tables/t'"));
  EXPECT_THAT(state, IsOk());
  return state->applied_events(0).untouched_row_count();
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

TEST(NonFiniteTest, ARowIsSkippedWhereThePolicySaysSo) {
  TestServer server;
  EXPECT_THAT(RowAfter(server, "NON_FINITE_POLICY_SKIP_ROW", {1, kNan}, {1, 1}),
              ElementsAre(0, 0));
  EXPECT_EQ(UntouchedRows(server), 1);
}

TEST(NonFiniteTest, ANanIsStoredInCanonicalFormWhereThePolicySaysSo) {
  TestServer server;
  const std::vector<float> row =
      RowAfter(server, "NON_FINITE_POLICY_PROPAGATE", {1, -kNan}, {1, 1});
  EXPECT_EQ(Fp32({row[1]}), std::string("\0\0\xc0\x7f", 4));
  EXPECT_EQ(UntouchedRows(server), 0);
}

TEST(NonFiniteTest, ASumThatOverflowsLeavesItsRowUnderReject) {
  TestServer server;
  EXPECT_THAT(
      RowAfter(server, "NON_FINITE_POLICY_REJECT", {kMax, 1}, {kMax, 1}),
      ElementsAre(0, 0));
  EXPECT_EQ(UntouchedRows(server), 1);
}

TEST(NonFiniteTest, ASquareThatOverflowsLeavesItsRowUnderReject) {
  TestServer server;
  EXPECT_THAT(RowAfter(server, "NON_FINITE_POLICY_REJECT", {1e30F, 0}, {0, 0}),
              ElementsAre(0, 0));
  EXPECT_EQ(UntouchedRows(server), 1);
}

}  // namespace
}  // namespace rowhouse::testing
