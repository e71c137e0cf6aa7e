// RecordEvents over the wire.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// A row of 1000 fp32 and its id.
constexpr int64_t kItemBytes = 4008;
constexpr char kSpec[] = R"(
  row_count: 2000 dim: 1000 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 1000
  max_part_count: 4 max_pull_bytes: 1048576 sparse {})";

void SpinUntil(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

// A call of RecordEvents; reads when told to.
class OpenRecord {
 public:
  explicit OpenRecord(TestServer& server, const std::string& options = "",
                      const std::string& table = "tables/t") {
    SetDeadline(context_);
    auto request = FromText<v1::RecordEventsRequest>(options);
    request.set_table(table);
    reader_ = server.events().RecordEvents(&context_, request);
  }
  ~OpenRecord() {
    context_.TryCancel();
    while (reader_ != nullptr && reader_->Read(&message_)) {
    }
    if (reader_ != nullptr) reader_->Finish();
  }

  // False at the end.
  bool Read() { return reader_->Read(&message_); }
  const v1::RecordEventsResponse& message() const { return message_; }
  // Reads what is left.
  absl::Status Finish() {
    while (Read()) {
    }
    const absl::Status status = wire::FromGrpc(reader_->Finish());
    reader_ = nullptr;
    return status;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::RecordEventsResponse>> reader_;
  v1::RecordEventsResponse message_;
};

class RecordCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(server_.CreateTable("tables/t", kSpec), IsOk());
    ASSERT_THAT(server_.OpenSession("tables/t", 0, 1), IsOk());
    table_bytes_ = ReservedBytes();
  }

  int64_t ReservedBytes() {
    return Invoke(server_.servers(), &v1::ServerService::Stub::GetServer,
                  v1::GetServerRequest())
        ->reserved_bytes();
  }

  // Applies an event with one part of so many rows, all of `row_id`.
  void ApplyEvent(int64_t event, int64_t row_count, int64_t row_id = 7) {
    std::vector<v1::PushGradientsRequest> messages;
    for (int64_t row = 0; row < row_count || messages.empty();) {
      v1::PushGradientsRequest message;
      if (row == 0) {
        message = FromText<v1::PushGradientsRequest>(absl::StrCat(
            "header { table: 'tables/t' trainer { session: 1 } event: ", event,
            " dtype: DATA_TYPE_FP32 row_count: ", row_count, " }"));
      }
      message.set_first_row(row);
      const int64_t count = std::min<int64_t>(row_count - row, 200);
      for (int64_t i = 0; i < count; ++i) message.add_row_ids(row_id);
      message.set_rows(Fp32(std::vector<float>(count * 1000, 0.25F)));
      messages.push_back(std::move(message));
      row += count;
    }
    ASSERT_THAT(server_.Push(messages), IsOk());
    ASSERT_THAT(server_.Seal("tables/t", 0, 1, event, 1), IsOk());
    ASSERT_THAT(
        server_.Commit(absl::StrCat(
            "table: 'tables/t' trainer { session: 1 } event: ", event,
            " commit { sessions: 1 row_adam { step_size: 0.5 beta2: 0.5 "
            "gradient_scale: 1 } }")),
        IsOk());
  }

  TestServer server_;
  int64_t table_bytes_ = 0;
};

TEST_F(RecordCallTest, AnEventTravelsInSmallMessages) {
  OpenRecord record(server_, "last_event: 1 digest: true");
  ASSERT_TRUE(record.Read());
  const v1::RecordingStart start = record.message().start();
  EXPECT_EQ(start.event(), 0);
  EXPECT_EQ(start.first_row_id(), 0);
  EXPECT_EQ(start.row_count(), 2000);
  EXPECT_THAT(start.arithmetic(), ::testing::StartsWith("cpu"));
  EXPECT_EQ(start.trainer_counts(0).trainer_count(), 1);
  EXPECT_EQ(start.buffer_bytes(), 2 * 1000 * kItemBytes);
  EXPECT_EQ(start.digest().row_sum(), server_.Digest("tables/t", 0)->row_sum());
  ApplyEvent(1, 600);

  ASSERT_TRUE(record.Read());
  const v1::RecordedEvent event = record.message().event();
  EXPECT_EQ(event.event(), 1);
  EXPECT_EQ(event.commit().row_adam().step_size(), 0.5);
  ASSERT_EQ(event.contributions_size(), 1);
  EXPECT_EQ(event.contributions(0).session(), 1);
  EXPECT_EQ(event.contributions(0).part_count(), 1);
  EXPECT_EQ(event.digest().row_sum(), server_.Digest("tables/t", 1)->row_sum());
  EXPECT_EQ(event.digest().history_sum(),
            server_.Digest("tables/t", 1)->history_sum());
  std::string rows;
  int64_t row_count = 0;
  int messages = 0;
  while (record.Read()) {
    const v1::RecordedRows& piece = record.message().part().rows();
    EXPECT_EQ(piece.row_count(), 600);
    EXPECT_EQ(piece.first_row(), row_count);
    EXPECT_LE(piece.row_ids_size() * kItemBytes, kMiB);
    for (const int64_t id : piece.row_ids()) EXPECT_EQ(id, 7);
    row_count += piece.row_ids_size();
    rows += piece.rows();
    ++messages;
  }
  EXPECT_EQ(row_count, 600);
  EXPECT_EQ(messages, 3);
  EXPECT_EQ(rows, Fp32(std::vector<float>(600 * 1000, 0.25F)));
  EXPECT_THAT(record.Finish(), IsOk());
}

TEST_F(RecordCallTest, TheBufferIsReservedAsLongAsTheCallLasts) {
  {
    OpenRecord record(server_, "buffer_bytes: 5000000");
    ASSERT_TRUE(record.Read());
    EXPECT_EQ(record.message().start().buffer_bytes(), 5000000);
    EXPECT_EQ(ReservedBytes(), table_bytes_ + 5000000);
  }
  SpinUntil([&] { return ReservedBytes() == table_bytes_; });
}

TEST_F(RecordCallTest, ABufferThatTheServerHasNotIsRefused) {
  const absl::Status refused =
      OpenRecord(server_, "buffer_bytes: 2000000000").Finish();
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "a recording of tables/t needs 2000000000 bytes"));
  EXPECT_EQ(wire::ReasonOf(refused), "MEMORY");
  EXPECT_EQ(ReservedBytes(), table_bytes_);
}

TEST_F(RecordCallTest, BadRequestsAreRefused) {
  EXPECT_THAT(OpenRecord(server_, "buffer_bytes: -1").Finish(),
              StatusIs(absl::StatusCode::kInvalidArgument, "buffer_bytes"));
  EXPECT_THAT(OpenRecord(server_, "last_event: 0").Finish(),
              StatusIs(absl::StatusCode::kInvalidArgument, "last_event"));
  EXPECT_THAT(OpenRecord(server_, "", "tables/u").Finish(),
              StatusIs(absl::StatusCode::kNotFound, "tables/u"));
  EXPECT_EQ(ReservedBytes(), table_bytes_);
}

TEST_F(RecordCallTest, AStalledCallerHoldsNeitherTrainingNorMemory) {
  // It reads nothing: a part of 4 MB fills the stream's window.
  OpenRecord record(server_);
  SpinUntil([&] { return ReservedBytes() > table_bytes_; });
  for (int64_t event = 1; event <= 5; ++event) ApplyEvent(event, 1000);
  EXPECT_THAT(server_.Digest("tables/t", 5), IsOk());
  SpinUntil([&] { return ReservedBytes() == table_bytes_; });
  const absl::Status ended = record.Finish();
  EXPECT_EQ(wire::ReasonOf(ended), "RECORDER_BEHIND") << ended;
}

TEST_F(RecordCallTest, TheTablesEndEndsIt) {
  OpenRecord record(server_);
  ASSERT_TRUE(record.Read());
  v1::DeleteTableRequest request;
  request.set_name("tables/t");
  ASSERT_THAT(
      Invoke(server_.tables(), &v1::TableService::Stub::DeleteTable, request),
      IsOk());
  EXPECT_THAT(record.Finish(),
              StatusIs(absl::StatusCode::kNotFound, "no table tables/t"));
  SpinUntil([&] { return ReservedBytes() == 0; });
}

TEST_F(RecordCallTest, ADrainEndsItsWait) {
  OpenRecord record(server_);
  ASSERT_TRUE(record.Read());
  ApplyEvent(1, 1);
  ASSERT_TRUE(record.Read());
  ASSERT_TRUE(record.Read());
  server_.server().Drain();
  const absl::Status ended = record.Finish();
  EXPECT_EQ(wire::ReasonOf(ended), "DRAINING") << ended;
  server_.server().Wait();
}

}  // namespace
}  // namespace rowhouse::testing
