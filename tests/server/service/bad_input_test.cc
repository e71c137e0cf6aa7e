// Every kind of bad input, over the wire: its code, reason and message, and
// that it changed nothing.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/service/bad_input_cases.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr char kSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 2 initializer { zeros {} }
  trainer_count: 2 gradient_reduction: GRADIENT_REDUCTION_SUM
  max_contribution_row_count: 4 max_part_count: 4 max_pull_bytes: 32
  sparse {})";
constexpr char kSingleSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 4
  max_part_count: 4 sparse {})";

void Merge(const std::string& text, google::protobuf::Message& message) {
  google::protobuf::TextFormat::Parser parser;
  ASSERT_TRUE(parser.MergeFromString(text, &message)) << text;
}

// Bytes `@n` stand for n zero bytes.
template <typename Message>
void Expand(Message& message) {
  int64_t size = 0;
  if (message.rows().starts_with('@') &&
      absl::SimpleAtoi(message.rows().substr(1), &size)) {
    message.set_rows(std::string(static_cast<size_t>(size), '\0'));
  }
}

class BadInputTest : public ::testing::TestWithParam<BadInput> {
 protected:
  static void SetUpTestSuite() {
    server_ = new TestServer(0, 2);
    ASSERT_THAT(server_->CreateTable("tables/t", kSpec), IsOk());
    ASSERT_THAT(server_->CreateTable("tables/one", kSingleSpec), IsOk());
    ASSERT_THAT(server_->OpenSession("tables/t", 0, 2), IsOk());
    ASSERT_THAT(server_->OpenSession("tables/t", 0, 3), IsOk());
    ASSERT_THAT(server_->OpenSession("tables/t", 1, 1), IsOk());
  }
  static void TearDownTestSuite() { delete server_; }

  template <typename Request, typename Stub, typename Response>
  static absl::Status Unary(Stub& stub,
                            grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                         const Request&,
                                                         Response*)) {
    return Invoke(stub, method, FromText<Request>(GetParam().messages[0]))
        .status();
  }

  static absl::Status Create(const std::string& base) {
    v1::CreateTableRequest request;
    Merge(base, request);
    Merge(GetParam().messages[0], request);
    return Invoke(server_->tables(), &v1::TableService::Stub::CreateTable,
                  request)
        .status();
  }

  static absl::Status Pull() {
    auto request = FromText<v1::PullRowsRequest>(GetParam().messages[0]);
    if (GetParam().name == "TooManyIds") {
      request.mutable_row_ids()->Resize(400'001, 0);
    }
    return server_->Pull(request).status();
  }

  // Messages with a header get `base` below it.
  template <typename Message>
  static std::vector<Message> Stream(const std::string& base) {
    std::vector<Message> messages;
    for (const std::string& text : GetParam().messages) {
      Message& message = messages.emplace_back();
      if (text.find("header {") != std::string::npos) Merge(base, message);
      Merge(text, message);
      Expand(message);
    }
    return messages;
  }

  static absl::Status Send();

  // All that a caller can see, but for times.
  static std::string State() {
    std::string state;
    const auto tables =
        Invoke(server_->tables(), &v1::TableService::Stub::ListTables,
               v1::ListTablesRequest());
    EXPECT_THAT(tables, IsOk());
    state += tables->DebugString();
    for (const v1::Table& table : tables->tables()) {
      const auto digest = server_->Digest(table.name(), 0);
      EXPECT_THAT(digest, IsOk());
      state += digest->DebugString();
      v1::GetEventStateRequest request;
      request.set_table(table.name());
      auto events = Invoke(server_->events(),
                           &v1::EventService::Stub::GetEventState, request);
      EXPECT_THAT(events, IsOk());
      for (v1::SessionState& session : *events->mutable_sessions()) {
        session.clear_idle_time();
      }
      state += events->DebugString();
    }
    return state;
  }

  static TestServer* server_;
};

TestServer* BadInputTest::server_ = nullptr;

absl::Status BadInputTest::Send() {
  using Events = v1::EventService::Stub;
  using Tables = v1::TableService::Stub;
  TestServer& server = *server_;
  const std::map<std::string, std::function<absl::Status()>> methods = {
      {"CreateTable",
       [] {
         return Create(absl::StrCat("name: 'tables/new' spec {", kSpec, "}"));
       }},
      {"CreateTableBare", [] { return Create(""); }},
      {"GetTable", [&] { return Unary(server.tables(), &Tables::GetTable); }},
      {"ListTables",
       [&] { return Unary(server.tables(), &Tables::ListTables); }},
      {"UpdateTable",
       [&] { return Unary(server.tables(), &Tables::UpdateTable); }},
      {"ResetTable",
       [&] { return Unary(server.tables(), &Tables::ResetTable); }},
      {"DeleteTable",
       [&] { return Unary(server.tables(), &Tables::DeleteTable); }},
      {"DigestTable",
       [&] { return Unary(server.tables(), &Tables::DigestTable); }},
      {"OpenSession",
       [&] { return Unary(server.events(), &Events::OpenSession); }},
      {"KeepAlive", [&] { return Unary(server.events(), &Events::KeepAlive); }},
      {"SealContribution",
       [&] { return Unary(server.events(), &Events::SealContribution); }},
      {"DiscardContribution",
       [&] { return Unary(server.events(), &Events::DiscardContribution); }},
      {"GetEventState",
       [&] { return Unary(server.events(), &Events::GetEventState); }},
      {"GetEventStatistics",
       [&] { return Unary(server.events(), &Events::GetEventStatistics); }},
      {"CommitEvent",
       [&] { return Unary(server.events(), &Events::CommitEvent); }},
      {"PullRows", [] { return Pull(); }},
      {"PushGradients",
       [&] {
         return server
             .Push(Stream<v1::PushGradientsRequest>(
                 "header { table: 'tables/t' trainer { session: 3 } event: 1 "
                 "dtype: DATA_TYPE_FP32 row_count: 1 }"))
             .status();
       }},
      {"ImportRows",
       [&] {
         return server
             .Import(Stream<v1::ImportRowsRequest>(
                 "header { table: 'tables/t' first_row_id: 1 row_count: 1 "
                 "dtype: DATA_TYPE_FP32 }"))
             .status();
       }},
  };
  return methods.at(GetParam().method)();
}

TEST_P(BadInputTest, IsRefusedAndChangesNothing) {
  const std::string before = State();
  const absl::Status status = Send();
  EXPECT_THAT(status, StatusIs(GetParam().code, GetParam().message));
  EXPECT_EQ(wire::ReasonOf(status), GetParam().reason);
  EXPECT_EQ(State(), before);
}

std::string NameOf(const ::testing::TestParamInfo<BadInput>& info) {
  return info.param.method + info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Table, BadInputTest,
                         ::testing::ValuesIn(BadTableInputs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Pull, BadInputTest,
                         ::testing::ValuesIn(BadPullInputs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Push, BadInputTest,
                         ::testing::ValuesIn(BadPushInputs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Import, BadInputTest,
                         ::testing::ValuesIn(BadImportInputs()), NameOf);
INSTANTIATE_TEST_SUITE_P(Event, BadInputTest,
                         ::testing::ValuesIn(BadEventInputs()), NameOf);

}  // namespace

void PrintTo(const BadInput& input, std::ostream* out) {
  *out << input.method << " " << input.name;
}

}  // namespace rowhouse::testing
