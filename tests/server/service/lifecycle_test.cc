// Calls that wait, callers that go, and the end of a server.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 sparse {})";

// A health check's request and answer: one field each.
constexpr char kHealthCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

std::string HealthOf(const std::string& service) {
  return absl::StrCat("\x0a", std::string(1, static_cast<char>(service.size())),
                      service);
}

void SpinUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

// A pull that waits for event 1, which never comes.
class WaitingPull {
 public:
  explicit WaitingPull(TestServer& server,
                       std::chrono::system_clock::time_point deadline)
      : server_(server) {
    context_.set_deadline(deadline);
    reader_ = server.rows().PullRows(
        &context_,
        FromText<v1::PullRowsRequest>("table: 'tables/t' min_event: 1"));
    SpinUntil([this] {
      return server_.server().calls().waiting_count() == 1 ||
             std::chrono::system_clock::now() > context_.deadline();
    });
  }

  void Cancel() { context_.TryCancel(); }

  absl::Status Finish() {
    v1::PullRowsResponse message;
    EXPECT_FALSE(reader_->Read(&message));
    return wire::FromGrpc(reader_->Finish());
  }

 private:
  TestServer& server_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::PullRowsResponse>> reader_;
};

std::chrono::system_clock::time_point In(std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}
constexpr std::chrono::milliseconds kLong = std::chrono::minutes(1);

std::unique_ptr<TestServer> Serve(const config::v1::ServerConfig& config) {
  auto server = std::make_unique<TestServer>(config);
  EXPECT_THAT(server->CreateTable("tables/t", kSpec), IsOk());
  EXPECT_THAT(server->OpenSession("tables/t", 0, 1), IsOk());
  // A caller may have its answer before the call is over.
  SpinUntil([&] { return server->server().calls().active_count() == 0; });
  return server;
}

std::unique_ptr<TestServer> Serve() { return Serve(TestServer::Config(0, 1)); }

TEST(WaitTest, ACancelledPullLeavesTheServer) {
  const auto server = Serve();
  WaitingPull pull(*server, In(kLong));
  pull.Cancel();
  EXPECT_THAT(pull.Finish(), StatusIs(absl::StatusCode::kCancelled, ""));
  SpinUntil([&] { return server->server().calls().active_count() == 0; });
}

TEST(WaitTest, AnExpiredPullLeavesTheServer) {
  const auto server = Serve();
  WaitingPull pull(*server, In(std::chrono::milliseconds(100)));
  EXPECT_THAT(pull.Finish(), StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  SpinUntil([&] { return server->server().calls().active_count() == 0; });
}

TEST(WaitTest, TheServersMaxWaitTellsThatTheEventIsPending) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.mutable_max_wait_duration()->set_nanos(1'000'000);
  const auto server = Serve(config);
  const absl::Status status =
      server->Pull("table: 'tables/t' exact_event: 1").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(wire::ReasonOf(status), "EVENT_PENDING");
}

TEST(WaitTest, AWaitingPullIsServedByTheEvent) {
  const auto server = Serve();
  std::future<absl::StatusOr<PulledRows>> pulled =
      std::async(std::launch::async, [&] {
        return server->Pull("table: 'tables/t' row_ids: 1 exact_event: 1");
      });
  SpinUntil([&] { return server->server().calls().waiting_count() == 1; });
  ASSERT_THAT(server->Seal("tables/t", 0, 1, 1, 0), IsOk());
  ASSERT_THAT(server->Commit("table: 'tables/t' trainer { session: 1 } "
                             "event: 1 commit { sessions: 1 skip {} }"),
              IsOk());
  const absl::StatusOr<PulledRows> rows = pulled.get();
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->event, 1);
}

TEST(WaitTest, ADeletedTableEndsItsWaits) {
  const auto server = Serve();
  WaitingPull pull(*server, In(kLong));
  v1::DeleteTableRequest request;
  request.set_name("tables/t");
  EXPECT_THAT(
      Invoke(server->tables(), &v1::TableService::Stub::DeleteTable, request),
      IsOk());
  EXPECT_THAT(pull.Finish(), StatusIs(absl::StatusCode::kNotFound, "tables/t"));
}

// A PushGradients stream whose header has reached the server.
class OpenPush {
 public:
  explicit OpenPush(TestServer& server) {
    SetDeadline(context_);
    writer_ = server.rows().PushGradients(&context_, &response_);
    EXPECT_TRUE(writer_->Write(FromText<v1::PushGradientsRequest>(
        "header { table: 'tables/t' trainer { session: 1 } event: 1 "
        "dtype: DATA_TYPE_FP32 row_count: 1 }")));
    SpinUntil([&] { return server.server().calls().active_count() == 1; });
  }

  absl::Status FinishRows() {
    v1::PushGradientsRequest message;
    message.add_row_ids(1);
    message.set_rows(Fp32({1, 2}));
    writer_->Write(message);
    writer_->WritesDone();
    return wire::FromGrpc(writer_->Finish());
  }

 private:
  grpc::ClientContext context_;
  v1::PushGradientsResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::PushGradientsRequest>> writer_;
};

TEST(DrainTest, WaitsEndNewCallsAreRefusedAndCallsUnderWayFinish) {
  const auto server = Serve();
  OpenPush push(*server);
  WaitingPull pull(*server, In(kLong));
  EXPECT_THAT(Invoke(server->servers(), &v1::ServerService::Stub::DrainServer,
                     v1::DrainServerRequest()),
              IsOk());

  const absl::Status waited = pull.Finish();
  EXPECT_THAT(waited, StatusIs(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(wire::ReasonOf(waited), "DRAINING");
  const absl::Status refused = server->Pull("table: 'tables/t'").status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_EQ(wire::ReasonOf(refused), "DRAINING");
  const auto about =
      Invoke(server->servers(), &v1::ServerService::Stub::GetServer,
             v1::GetServerRequest());
  ASSERT_THAT(about, IsOk());
  EXPECT_EQ(about->state(), v1::GetServerResponse::STATE_DRAINING);
  EXPECT_EQ(*CallRaw(server->channel(), kHealthCheck, ""), kNotServing);

  EXPECT_THAT(push.FinishRows(), IsOk());
  server->server().Wait();
  EXPECT_THAT(server->Pull("table: 'tables/t'"),
              StatusIs(absl::StatusCode::kUnavailable, ""));
}

TEST(DrainTest, CallsThatDoNotFinishAreCancelled) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.mutable_drain_timeout_duration()->set_nanos(1'000'000);
  const auto server = Serve(config);
  OpenPush push(*server);
  server->server().Drain();
  server->server().Wait();
  EXPECT_FALSE(push.FinishRows().ok());
}

TEST(DrainTest, HealthTurnsDuringTheDelayWhileCallsAreServed) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.mutable_drain_delay_duration()->set_seconds(3600);
  const auto server = Serve(config);
  server->server().Drain();
  SpinUntil([&] {
    return *CallRaw(server->channel(), kHealthCheck, "") == kNotServing;
  });
  EXPECT_THAT(server->Pull("table: 'tables/t'"), IsOk());
}

TEST(ServiceTest, HealthServesEveryServiceByName) {
  const auto server = Serve();
  for (const std::string service :
       {"", "rowhouse.v1.RowService", "rowhouse.v1.EventService",
        "rowhouse.v1.TableService", "rowhouse.v1.ServerService"}) {
    const auto health =
        CallRaw(server->channel(), kHealthCheck, HealthOf(service));
    ASSERT_THAT(health, IsOk()) << service;
    EXPECT_EQ(*health, kServing) << service;
  }
  EXPECT_THAT(CallRaw(server->channel(), kHealthCheck, HealthOf("other")),
              StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST(ServiceTest, ReflectionListsTheServices) {
  const auto server = Serve();
  // list_services = "*".
  const auto listed =
      CallRaw(server->channel(),
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              "\x3a\x01*");
  ASSERT_THAT(listed, IsOk());
  EXPECT_THAT(*listed, HasSubstr("rowhouse.v1.RowService"));
  EXPECT_THAT(*listed, HasSubstr("rowhouse.v1.EventService"));
  EXPECT_THAT(*listed, HasSubstr("rowhouse.v1.TableService"));
  EXPECT_THAT(*listed, HasSubstr("rowhouse.v1.ServerService"));
  EXPECT_THAT(*listed, HasSubstr("grpc.health.v1.Health"));
}

TEST(ServiceTest, AServerTellsWhoItIs) {
  const auto server = Serve(TestServer::Config(0, 1));
  const auto about =
      Invoke(server->servers(), &v1::ServerService::Stub::GetServer,
             v1::GetServerRequest());
  ASSERT_THAT(about, IsOk());
  EXPECT_EQ(about->cluster_id(), "test");
  EXPECT_EQ(about->server_index(), 0);
  EXPECT_EQ(about->server_count(), 1);
  EXPECT_EQ(about->state(), v1::GetServerResponse::STATE_SERVING);
  EXPECT_EQ(about->backend(), "cpu");
  EXPECT_THAT(about->device().description(), HasSubstr("cpu, "));
  EXPECT_GT(about->device().memory_bytes(),
            about->device().free_memory_bytes());
  EXPECT_GT(about->device().free_memory_bytes(), 0);
  EXPECT_EQ(about->limits().max_pull_row_count(), 400'000);
  EXPECT_GT(about->reserved_bytes(), 0);
  EXPECT_FALSE(about->version().empty());
}

TEST(ServiceTest, TablesMayReserveFourFifthsOfTheMachineUnlessToldOtherwise) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.clear_memory_limit_bytes();
  TestServer server(config);
  const auto about =
      Invoke(server.servers(), &v1::ServerService::Stub::GetServer,
             v1::GetServerRequest());
  ASSERT_THAT(about, IsOk());
  EXPECT_EQ(about->limits().memory_limit_bytes(),
            about->device().memory_bytes() / 10 * 8);
}

TEST(ServiceTest, ALargePullReachesAClientOfDefaultLimits) {
  TestServer server;
  ASSERT_THAT(server.CreateTable("tables/large", R"(
        row_count: 20000 dim: 300 row_dtype: DATA_TYPE_BF16
        gradient_dtype: DATA_TYPE_BF16 shard_count: 1 trainer_count: 1
        initializer { uniform { seed: 5 bound: 1 } }
        gradient_reduction: GRADIENT_REDUCTION_SUM
        max_contribution_row_count: 8 max_part_count: 4 sparse {})"),
              IsOk());
  v1::PullRowsRequest request;
  request.set_table("tables/large");
  for (int64_t row_id = 19999; row_id >= 0; --row_id) {
    request.add_row_ids(row_id);
  }
  const auto pulled = server.Pull(request);
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ(pulled->rows.size(), 20000 * 600);
  EXPECT_GT(pulled->message_count, 8);
  EXPECT_LE(pulled->largest_message_bytes, (1 << 20) + 64);
  // The last row of the answer is row 0, alone too.
  const auto row = server.Pull("table: 'tables/large' row_ids: 0");
  ASSERT_THAT(row, IsOk());
  EXPECT_EQ(pulled->rows.substr(19999 * 600), row->rows);
}

}  // namespace
}  // namespace rowhouse::testing
