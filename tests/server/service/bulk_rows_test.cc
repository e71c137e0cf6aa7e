// Rows on their way: who reads slowly or goes away, and messages that are not
// as ours are.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kRows = 4096;  // Of 4 KiB: 16 messages.
constexpr char kSpec[] = R"(
  row_count: 4096 dim: 1024 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 8
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 max_pull_bytes: 16777216 sparse {})";

// All rows, as trainer `rank`.
v1::PullRowsRequest AllRows(int rank) {
  auto request = FromText<v1::PullRowsRequest>(absl::StrCat(
      "table: 'tables/t' trainer { trainer_rank: ", rank, " session: 1 }"));
  for (int row = 0; row < kRows; ++row) request.add_row_ids(row);
  return request;
}

class BulkRowsTest : public ::testing::Test {
 protected:
  void Start(int64_t total_bytes, int64_t client_bytes) {
    config::v1::ServerConfig config = TestServer::Config(0, 1);
    config.set_max_in_flight_bytes(total_bytes);
    config.set_max_client_in_flight_bytes(client_bytes);
    server_ = std::make_unique<TestServer>(config);
    ASSERT_THAT(server_->CreateTable("tables/t", kSpec), IsOk());
    for (int rank = 0; rank < 8; ++rank) {
      ASSERT_THAT(server_->OpenSession("tables/t", rank, 1), IsOk());
    }
  }

  const server::Staging& staging() { return server_->server().staging(); }
  int64_t used_bytes() { return staging().in_flight().used_bytes(); }
  int64_t waiting_count() { return staging().in_flight().waiting_count(); }

  int LandingPartCount() {
    v1::GetEventStateRequest request;
    request.set_table("tables/t");
    const auto state = Invoke(server_->events(),
                              &v1::EventService::Stub::GetEventState, request);
    return state.ok() ? state->load().landing_part_count() : -1;
  }

  template <typename Condition>
  static void Await(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }
  void AwaitNothingInFlight() {
    Await([this] { return server_->server().calls().active_count() == 0; });
    Await([this] { return used_bytes() == 0; });
    EXPECT_EQ(waiting_count(), 0);
    EXPECT_EQ(staging().blocks().used_count(), 0);
  }

  std::unique_ptr<TestServer> server_;
};

// A pull whose caller reads nothing.
class StalledPull {
 public:
  StalledPull(TestServer& server, int rank) {
    SetDeadline(context_);
    reader_ = server.rows().PullRows(&context_, AllRows(rank));
  }
  absl::Status Cancel() {
    context_.TryCancel();
    return Drain();
  }
  absl::Status Drain() {
    v1::PullRowsResponse message;
    while (reader_->Read(&message)) row_count_ += message.rows().size() / 4096;
    return wire::FromGrpc(reader_->Finish());
  }
  size_t row_count() const { return row_count_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::PullRowsResponse>> reader_;
  size_t row_count_ = 0;
};

TEST_F(BulkRowsTest, WhoReadsSlowlyHoldsItsShareAndHoldsUpNoOther) {
  ASSERT_NO_FATAL_FAILURE(Start(8 * kMiB, 2 * kMiB));
  StalledPull first(*server_, 0);
  StalledPull second(*server_, 0);  // Of the same session.
  Await([this] { return used_bytes() == 2 * kMiB && waiting_count() > 0; });
  for (int i = 0; i < 3; ++i) {
    const auto pulled = server_->Pull(AllRows(1));
    ASSERT_THAT(pulled, IsOk());
    EXPECT_EQ(pulled->rows.size(), static_cast<size_t>(16 * kMiB));
    EXPECT_EQ(pulled->message_count, 16);
    EXPECT_LE(pulled->largest_message_bytes, kMiB + 64);
  }
  EXPECT_LE(staging().blocks().block_count(), 8);
  // Whoever goes on reading gets it all.
  std::thread other([&] { EXPECT_THAT(second.Drain(), IsOk()); });
  EXPECT_THAT(first.Drain(), IsOk());
  other.join();
  EXPECT_EQ(first.row_count(), static_cast<size_t>(kRows));
  EXPECT_EQ(second.row_count(), static_cast<size_t>(kRows));
  AwaitNothingInFlight();
}

TEST_F(BulkRowsTest, ACancelledPullFreesWhatIsInFlight) {
  ASSERT_NO_FATAL_FAILURE(Start(8 * kMiB, 4 * kMiB));
  StalledPull pull(*server_, 0);
  Await([this] { return used_bytes() > 0; });
  EXPECT_THAT(pull.Cancel(), StatusIs(absl::StatusCode::kCancelled, ""));
  AwaitNothingInFlight();
  EXPECT_THAT(server_->Pull(AllRows(0)), IsOk());
}

TEST_F(BulkRowsTest, APullThatWaitsForRoomMayBeCancelledAndOthersGetTheRoom) {
  ASSERT_NO_FATAL_FAILURE(Start(2 * kMiB, 2 * kMiB));
  StalledPull holder(*server_, 0);
  Await([this] { return used_bytes() == 2 * kMiB; });
  StalledPull cancelled(*server_, 1);
  Await([this] { return waiting_count() >= 1; });
  EXPECT_THAT(cancelled.Cancel(), StatusIs(absl::StatusCode::kCancelled, ""));
  StalledPull waiting(*server_, 2);
  Await([this] { return server_->server().calls().active_count() == 2; });
  std::thread other([&] { EXPECT_THAT(waiting.Drain(), IsOk()); });
  EXPECT_THAT(holder.Drain(), IsOk());
  other.join();
  EXPECT_EQ(waiting.row_count(), static_cast<size_t>(kRows));
  EXPECT_LE(staging().blocks().block_count(), 2);
  AwaitNothingInFlight();
}

// An evaluator reads outside sessions.
v1::PullRowsRequest Anonymous() {
  v1::PullRowsRequest request = AllRows(0);
  request.clear_trainer();
  return request;
}

TEST_F(BulkRowsTest, ASlowReaderOfASocketHoldsUpNoOtherClientOfIt) {
  for (const bool socket : {false, true}) {
    SCOPED_TRACE(socket ? "socket" : "port");
    config::v1::ServerConfig config = TestServer::Config(0, 1);
    config.set_max_in_flight_bytes(64 * kMiB);
    config.set_max_client_in_flight_bytes(2 * kMiB);
    const std::string path = absl::StrCat("unix:", ::testing::TempDir(),
                                          "/rowhouse_slow_", getpid());
    config.add_more_listen_addresses(path);
    server_.reset();
    server_ = std::make_unique<TestServer>(config);
    ASSERT_THAT(server_->CreateTable("tables/t", kSpec), IsOk());
    const std::string address = socket ? path : server_->server().address();
    const auto slow = v1::RowService::NewStub(ChannelTo(address));
    const auto quick = v1::RowService::NewStub(ChannelTo(address));
    grpc::ClientContext slow_context;
    const auto stalled = slow->PullRows(&slow_context, Anonymous());
    Await([this] { return used_bytes() == 2 * kMiB; });
    grpc::ClientContext context;
    SetDeadline(context);
    const auto reader = quick->PullRows(&context, Anonymous());
    v1::PullRowsResponse message;
    size_t rows = 0;
    while (reader->Read(&message)) rows += message.rows().size() / 4096;
    EXPECT_THAT(wire::FromGrpc(reader->Finish()), IsOk());
    EXPECT_EQ(rows, static_cast<size_t>(kRows));
    slow_context.TryCancel();
    (void)stalled->Finish();
    AwaitNothingInFlight();
  }
}

// A push that is begun and not ended: one row, it says, and `rows_bytes` come.
class HalfOpenPush {
 public:
  HalfOpenPush(TestServer& server, int64_t row_count, int64_t rows_bytes) {
    SetDeadline(context_);
    writer_ = server.rows().PushGradients(&context_, &response_);
    auto message = FromText<v1::PushGradientsRequest>(
        absl::StrCat("header { table: 'tables/t' trainer { session: 1 } "
                     "event: 1 dtype: DATA_TYPE_FP32 row_count: ",
                     row_count, " }"));
    for (int64_t row = 0; row < row_count; ++row) message.add_row_ids(row);
    message.set_rows(std::string(static_cast<size_t>(rows_bytes), '\1'));
    writer_->Write(message);
  }
  absl::Status End() { return wire::FromGrpc(writer_->Finish()); }
  absl::Status Cancel() {
    context_.TryCancel();
    return End();
  }

 private:
  grpc::ClientContext context_;
  v1::PushGradientsResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::PushGradientsRequest>> writer_;
};

TEST_F(BulkRowsTest, APushThatBeginsWithTooMuchIsRefusedBeforeItGoesOn) {
  ASSERT_NO_FATAL_FAILURE(Start(8 * kMiB, 4 * kMiB));
  EXPECT_THAT(HalfOpenPush(*server_, 1, 3 * kMiB).End(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the size of rows is 3145728; it must be at most "
                       "1048576"));
  EXPECT_THAT(HalfOpenPush(*server_, 1, 8192).End(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the count of rows sent is 2"));
  AwaitNothingInFlight();
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0;
  int64_t resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Each repeat of a part that is known holds a message of its own.
TEST_F(BulkRowsTest, RepeatsThatStopHalfwayHoldNoMoreThanIsConfigured) {
  ASSERT_NO_FATAL_FAILURE(Start(8 * kMiB, 2 * kMiB));
  auto part = FromText<v1::PushGradientsRequest>(
      "header { table: 'tables/t' trainer { session: 1 } event: 1 "
      "dtype: DATA_TYPE_FP32 row_count: 1 } row_ids: 1");
  part.set_rows(std::string(4096, '\1'));
  ASSERT_THAT(server_->Push({part}), IsOk());
  const int64_t before = ResidentBytes();
  std::vector<std::unique_ptr<HalfOpenPush>> pushes;
  for (int i = 0; i < 16; ++i) {
    pushes.push_back(std::make_unique<HalfOpenPush>(*server_, 256, kMiB));
  }
  Await([this] { return LandingPartCount() == 16; });
  for (int i = 0; i < 384; ++i) {
    const absl::Status refused = HalfOpenPush(*server_, 256, kMiB).End();
    ASSERT_EQ(wire::ReasonOf(refused), "REPEATS_OPEN") << refused;
  }
  EXPECT_LE(ResidentBytes() - before, 64 * kMiB);
  for (auto& push : pushes) (void)push->Cancel();
  AwaitNothingInFlight();
}

TEST_F(BulkRowsTest, BytesThatAreNoMessageAreRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(Start(8 * kMiB, 4 * kMiB));
  for (const char* method : {"PullRows", "PushGradients"}) {
    const absl::Status refused =
        CallRaw(server_->channel(),
                absl::StrCat("/rowhouse.v1.RowService/", method), "\xff\xff")
            .status();
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                  "a message is no protobuf of its type"));
    EXPECT_EQ(wire::ReasonOf(refused), "MALFORMED");
  }
}

// As protobuf may write them: a message is the concatenation of its fields.
TEST_F(BulkRowsTest, FieldsOfAPushMayComeInAnyOrder) {
  ASSERT_NO_FATAL_FAILURE(Start(8 * kMiB, 4 * kMiB));
  v1::PushGradientsRequest rows;
  rows.set_rows(std::string(2 * 4096, '\1'));
  auto fields = FromText<v1::PushGradientsRequest>(
      "header { table: 'tables/t' trainer { session: 1 } event: 1 "
      "dtype: DATA_TYPE_FP32 row_count: 2 } row_ids: [7, 9]");
  const auto pushed =
      CallRaw(server_->channel(), "/rowhouse.v1.RowService/PushGradients",
              rows.SerializeAsString() + fields.SerializeAsString());
  ASSERT_THAT(pushed, IsOk());
  v1::PushGradientsResponse response;
  ASSERT_TRUE(response.ParseFromString(*pushed));
  EXPECT_EQ(response.row_count(), 2);
  EXPECT_FALSE(response.duplicate());
  // The same in the usual order is the same part.
  fields.set_rows(rows.rows());
  const auto again = server_->Push({fields});
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->duplicate());
}

}  // namespace
}  // namespace rowhouse::testing
