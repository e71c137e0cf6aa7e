// Streams whose callers have stalled end as soon as they are of no more use.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
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

constexpr auto kAborted = absl::StatusCode::kAborted;

constexpr int kMostRows = 8;
constexpr int kStalledRows = 4;
constexpr char kSpec[] = R"(
  row_count: 10 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 sparse {})";

// Header of part `part` of `row_count` rows, and the first of them.
v1::PushGradientsRequest FirstMessage(int part, int row_count) {
  auto message = FromText<v1::PushGradientsRequest>(absl::StrCat(
      "header { table: 'tables/t' trainer { session: 1 } event: 1 part: ", part,
      " dtype: DATA_TYPE_FP32 row_count: ", row_count, " } row_ids: 1"));
  message.set_rows(Fp32({1, 2}));
  return message;
}

class StalledStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(server_.CreateTable("tables/t", kSpec), IsOk());
    ASSERT_THAT(server_.OpenSession("tables/t", 0, 1), IsOk());
    // One row is staged, so that `LandingRows` is always refused.
    ASSERT_THAT(server_.Push({FirstMessage(0, 1)}), IsOk());
    WaitForCalls(0);
  }

  // Rows of the parts that land: as the refusal of a part tells that would fill
  // the contribution alone.
  int64_t LandingRows() {
    const absl::Status full =
        server_.Push({FirstMessage(3, kMostRows)}).status();
    const auto details = wire::DetailsOf(full);
    EXPECT_EQ(wire::ReasonOf(full), "CONTRIBUTION_FULL") << full;
    if (!details.has_value()) return 0;
    return std::stoll(details->metadata.at("found")) - kMostRows - 1;
  }

  void WaitForCalls(int64_t count) {
    while (server_.server().calls().active_count() != count) {
      std::this_thread::yield();
    }
  }

  TestServer server_;
};

// Part 1, of which one row of four is sent, and then nothing.
class StalledPush {
 public:
  explicit StalledPush(TestServer& server) {
    SetDeadline(context_);
    writer_ = server.rows().PushGradients(&context_, &response_);
    EXPECT_TRUE(writer_->Write(FirstMessage(1, kStalledRows)));
  }

  // Sends nothing: waits until the server ends the call.
  absl::Status Finish() { return wire::FromGrpc(writer_->Finish()); }

  absl::Status SendRestAndFinish() {
    for (int row = 1; row < kStalledRows; ++row) {
      v1::PushGradientsRequest message;
      message.set_first_row(row);
      message.add_row_ids(row);
      message.set_rows(Fp32({1, 2}));
      if (!writer_->Write(message)) break;
    }
    writer_->WritesDone();
    return Finish();
  }

 private:
  grpc::ClientContext context_;
  v1::PushGradientsResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::PushGradientsRequest>> writer_;
};

class StalledPushTest : public StalledStreamTest {
 protected:
  void SetUp() override {
    StalledStreamTest::SetUp();
    push_ = std::make_unique<StalledPush>(server_);
    while (LandingRows() != kStalledRows) std::this_thread::yield();
  }

  void ExpectEnd(absl::StatusCode code, const std::string& reason) {
    const absl::Status ended = push_->Finish();
    EXPECT_THAT(ended, StatusIs(code, ""));
    EXPECT_EQ(wire::ReasonOf(ended), reason);
  }

  std::unique_ptr<StalledPush> push_;
};

TEST_F(StalledPushTest, EndsWhenItsPartBeginsToLandAgain) {
  StalledPush again(server_);
  ExpectEnd(kAborted, "SUPERSEDED");
  EXPECT_EQ(LandingRows(), kStalledRows);
  EXPECT_THAT(again.SendRestAndFinish(), IsOk());
  WaitForCalls(0);
}

TEST_F(StalledPushTest, EndsWhenItsContributionIsDiscarded) {
  EXPECT_THAT(
      Invoke(server_.events(), &v1::EventService::Stub::DiscardContribution,
             FromText<v1::DiscardContributionRequest>(
                 "table: 'tables/t' trainer { session: 1 } event: 1")),
      IsOk());
  ExpectEnd(kAborted, "SUPERSEDED");
  WaitForCalls(0);
}

TEST_F(StalledPushTest, EndsWhenItsSessionIsFenced) {
  EXPECT_THAT(server_.OpenSession("tables/t", 0, 2), IsOk());
  ExpectEnd(kAborted, "FENCED");
  WaitForCalls(0);
}

TEST_F(StalledPushTest, EndsWhenItsContributionIsSealedWithoutIt) {
  EXPECT_THAT(server_.Seal("tables/t", 0, 1, 1, 1), IsOk());
  ExpectEnd(absl::StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED");
  WaitForCalls(0);
}

// And with it goes the table, whose memory the call held.
TEST_F(StalledPushTest, EndsWhenItsTableIsDeleted) {
  v1::DeleteTableRequest request;
  request.set_name("tables/t");
  EXPECT_THAT(
      Invoke(server_.tables(), &v1::TableService::Stub::DeleteTable, request),
      IsOk());
  ExpectEnd(absl::StatusCode::kNotFound, "NO_SUCH_TABLE");
  WaitForCalls(0);
}

TEST_F(StalledPushTest, OfManyThatBeginAtOnceAllEndButOne) {
  constexpr int kStreams = 16;
  std::vector<std::unique_ptr<StalledPush>> pushes;
  pushes.push_back(std::move(push_));
  for (int i = 0; i < kStreams; ++i) {
    pushes.push_back(std::make_unique<StalledPush>(server_));
  }
  WaitForCalls(1);
  EXPECT_EQ(LandingRows(), kStalledRows);
  // Whichever began last is left, and may finish.
  int ok_count = 0;
  for (const auto& push : pushes) {
    const absl::Status status = push->SendRestAndFinish();
    if (status.ok()) {
      ++ok_count;
    } else {
      EXPECT_EQ(wire::ReasonOf(status), "SUPERSEDED") << status;
    }
  }
  EXPECT_EQ(ok_count, 1);
}

// An import of rows 0 and 1, of which one is sent, and then nothing.
class StalledImport {
 public:
  explicit StalledImport(TestServer& server) {
    SetDeadline(context_);
    writer_ = server.rows().ImportRows(&context_, &response_);
    EXPECT_TRUE(writer_->Write(ImportOf(2)));
  }

  // The header and the first row of an import of so many rows.
  static v1::ImportRowsRequest ImportOf(int row_count) {
    auto message = FromText<v1::ImportRowsRequest>(
        absl::StrCat("header { table: 'tables/t' dtype: DATA_TYPE_FP32 "
                     "row_count: ",
                     row_count, " }"));
    message.set_rows(Fp32({1, 2}));
    return message;
  }

  absl::Status Finish() { return wire::FromGrpc(writer_->Finish()); }

  absl::Status SendRestAndFinish() {
    v1::ImportRowsRequest message;
    message.set_first_row(1);
    message.set_rows(Fp32({3, 4}));
    writer_->Write(message);
    writer_->WritesDone();
    return Finish();
  }

 private:
  grpc::ClientContext context_;
  v1::ImportRowsResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::ImportRowsRequest>> writer_;
};

// A server two of whose imports have stalled.
class StalledImports {
 public:
  explicit StalledImports(
      const config::v1::ServerConfig& config = TestServer::Config(0, 1))
      : server(config) {
    EXPECT_THAT(server.CreateTable("tables/t", kSpec), IsOk());
    for (auto* import : {&first, &second}) {
      *import = std::make_unique<StalledImport>(server);
      ++begun_;
      while (count() != begun_) std::this_thread::yield();
    }
  }

  int64_t count() {
    return (*server.server().tables().Find("tables/t"))->imports.count();
  }
  absl::Status ImportThird() {
    return server.Import({StalledImport::ImportOf(1)}).status();
  }

  TestServer server;
  std::unique_ptr<StalledImport> first;
  std::unique_ptr<StalledImport> second;

 private:
  int64_t begun_ = 0;
};

TEST(StalledImportTest, AThirdWaitsForThePlaceOfOneOfTwo) {
  StalledImports imports;
  const absl::Status refused = imports.ImportThird();
  EXPECT_EQ(wire::ReasonOf(refused), "IMPORTS_OPEN") << refused;
  const auto details = wire::DetailsOf(refused);
  ASSERT_TRUE(details.has_value());
  EXPECT_TRUE(details->retry_delay.has_value());
  EXPECT_THAT(imports.first->SendRestAndFinish(), IsOk());
  EXPECT_THAT(imports.ImportThird(), IsOk());
  EXPECT_THAT(imports.second->SendRestAndFinish(), IsOk());
}

TEST(StalledImportTest, AThirdTakesThePlaceOfOneThatHasBeenSilentForALease) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.mutable_lease_duration()->set_nanos(1'000'000);
  StalledImports imports(config);
  absl::Status third = imports.ImportThird();
  while (wire::ReasonOf(third) == "IMPORTS_OPEN") third = imports.ImportThird();
  EXPECT_THAT(third, IsOk());
  const absl::Status ended = imports.first->Finish();
  EXPECT_THAT(ended, StatusIs(kAborted, ""));
  EXPECT_EQ(wire::ReasonOf(ended), "SUPERSEDED");
  EXPECT_THAT(imports.second->SendRestAndFinish(), IsOk());
}

TEST(StalledImportTest, EndsWhenItsTableIsDeleted) {
  StalledImports imports;
  v1::DeleteTableRequest request;
  request.set_name("tables/t");
  EXPECT_THAT(Invoke(imports.server.tables(),
                     &v1::TableService::Stub::DeleteTable, request),
              IsOk());
  EXPECT_EQ(wire::ReasonOf(imports.first->Finish()), "NO_SUCH_TABLE");
  EXPECT_EQ(wire::ReasonOf(imports.second->Finish()), "NO_SUCH_TABLE");
}

}  // namespace
}  // namespace rowhouse::testing
