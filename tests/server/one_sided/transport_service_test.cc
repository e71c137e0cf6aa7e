// What the service refuses, with stubs of its own.

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "proto/wire/error.h"
#include "proto/wire/host_identity.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"
#include "rowhouse/v1/transport_service.grpc.pb.h"
#include "server/transport/retry_allocation.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr char kSpec[] =
    "row_count: 8 dim: 2 row_dtype: DATA_TYPE_FP32 "
    "gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1 "
    "gradient_reduction: GRADIENT_REDUCTION_SUM "
    "max_contribution_row_count: 10 max_part_count: 2 max_pull_bytes: 1048576 "
    "sparse {}";

class TransportServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(server_.CreateTable("tables/t", kSpec), IsOk());
    ASSERT_THAT(server_.OpenSession("tables/t", 0, 1), IsOk());
  }

  static v1::MapTableRequest Request() {
    v1::MapTableRequest request;
    request.set_table("tables/t");
    const wire::HostIdentity here = wire::ThisHost();
    request.mutable_host()->set_boot_id(here.boot_id);
    request.mutable_host()->set_user_id(here.user_id);
    request.set_inbox(true);
    return request;
  }

  // An open mapping; ends with this.
  struct Open {
    explicit Open(v1::TransportService::Stub& stub)
        : stream(stub.MapTable(&context)) {
      stream->Write(Request());
      EXPECT_TRUE(stream->Read(&answer));
    }
    grpc::ClientContext context;
    std::unique_ptr<
        grpc::ClientReaderWriter<v1::MapTableRequest, v1::MapTableResponse>>
        stream;
    v1::MapTableResponse answer;
  };

  absl::Status Refused(const v1::MapTableRequest& request) {
    grpc::ClientContext context;
    SetDeadline(context);
    const auto stream = stub_->MapTable(&context);
    stream->Write(request);
    v1::MapTableResponse answer;
    EXPECT_FALSE(stream->Read(&answer));
    return wire::FromGrpc(stream->Finish());
  }

  absl::Status Push(const v1::PushInboxRequest& request) {
    return Invoke(*stub_, &v1::TransportService::Stub::PushInbox, request)
        .status();
  }

  static v1::PushInboxRequest PushRequest(int64_t mapping, int64_t row_count,
                                          int64_t ids, int64_t rows) {
    auto request = FromText<v1::PushInboxRequest>(
        "header { table: 'tables/t' trainer { session: 1 } event: 1 "
        "dtype: DATA_TYPE_FP32 }");
    request.set_mapping(mapping);
    request.mutable_header()->set_row_count(row_count);
    request.set_row_ids_offset_bytes(ids);
    request.set_rows_offset_bytes(rows);
    request.set_row_bytes(8);
    return request;
  }

  TestServer server_{OneSidedConfig("cpu")};
  std::unique_ptr<v1::TransportService::Stub> stub_ =
      v1::TransportService::NewStub(server_.channel());
};

TEST_F(TransportServiceTest, OtherHostsAndUsersAreRefused) {
  v1::MapTableRequest request = Request();
  request.mutable_host()->set_boot_id("elsewhere");
  absl::Status refused = Refused(request);
  EXPECT_EQ(wire::ReasonOf(refused), "OTHER_HOST");
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                "host.boot_id is 'elsewhere'"));
  request = Request();
  request.mutable_host()->set_user_id(request.host().user_id() + 1);
  refused = Refused(request);
  EXPECT_EQ(wire::ReasonOf(refused), "OTHER_USER");
  request.clear_host();
  EXPECT_EQ(wire::ReasonOf(Refused(request)), "MALFORMED");
  request = Request();
  request.set_table("tables/none");
  EXPECT_EQ(wire::ReasonOf(Refused(request)), "NO_SUCH_TABLE");
  // Nothing of it is left.
  EXPECT_THAT(Open(*stub_).answer.mapping(), ::testing::Ne(0));
}

TEST_F(TransportServiceTest, AServerThatDoesNotOfferItSaysSo) {
  TestServer plain;
  ASSERT_THAT(plain.CreateTable("tables/t", kSpec), IsOk());
  stub_ = v1::TransportService::NewStub(plain.channel());
  EXPECT_EQ(wire::ReasonOf(Refused(Request())), "NOT_OFFERED");
}

TEST_F(TransportServiceTest, MappingsThatAreNotThereAreRefused) {
  v1::OpenReadWindowRequest request;
  request.set_mapping(5);
  EXPECT_EQ(
      wire::ReasonOf(
          Invoke(*stub_, &v1::TransportService::Stub::OpenReadWindow, request)
              .status()),
      "MAPPING_GONE");
  EXPECT_EQ(wire::ReasonOf(Push(PushRequest(5, 1, 0, 8))), "MAPPING_GONE");
}

TEST_F(TransportServiceTest, AWindowIsOfTheEventAskedFor) {
  Open open(*stub_);
  v1::OpenReadWindowRequest request;
  request.set_mapping(open.answer.mapping());
  const auto window =
      Invoke(*stub_, &v1::TransportService::Stub::OpenReadWindow, request);
  ASSERT_THAT(window, IsOk());
  EXPECT_EQ(window->event(), 0);
  const auto word = kernels::MakeBackend({})->get()->Map(
      {open.answer.epoch().handle(), open.answer.epoch().offset_bytes(),
       open.answer.epoch().size_bytes()},
      kernels::MapAccess::kRead);
  ASSERT_THAT(word, IsOk());
  EXPECT_EQ(*word->as<int64_t>(), window->epoch());
  request.set_exact_event(-1);
  EXPECT_EQ(
      wire::ReasonOf(
          Invoke(*stub_, &v1::TransportService::Stub::OpenReadWindow, request)
              .status()),
      "BAD_EVENT");
  request.clear_exact_event();
  request.mutable_trainer()->set_session(7);
  EXPECT_EQ(
      wire::ReasonOf(
          Invoke(*stub_, &v1::TransportService::Stub::OpenReadWindow, request)
              .status()),
      "NO_SESSION");
}

TEST_F(TransportServiceTest, PartsOutsideOfTheInboxAreRefused) {
  Open open(*stub_);
  const int64_t mapping = open.answer.mapping();
  const int64_t size = open.answer.inbox().size_bytes();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto refused = [&](int64_t count, int64_t ids, int64_t rows) {
    return wire::ReasonOf(Push(PushRequest(mapping, count, ids, rows)));
  };
  EXPECT_EQ(refused(1, size - 7, 0), "INBOX_RANGE");
  EXPECT_EQ(refused(1, 0, size - 7), "INBOX_RANGE");
  EXPECT_EQ(refused(1, -8, 0), "INBOX_RANGE");
  EXPECT_EQ(refused(1, 0, -8), "INBOX_RANGE");
  EXPECT_EQ(refused(1, kMost, 0), "INBOX_RANGE");
  EXPECT_EQ(refused(kMost, 0, 0), "INBOX_RANGE");
  // Zeros: row 0, by a gradient of 0.
  EXPECT_EQ(refused(1, size - 8, size - 8), "");
  v1::PushInboxRequest other = PushRequest(mapping, 1, 0, 8);
  other.mutable_header()->set_table("tables/u");
  EXPECT_EQ(wire::ReasonOf(Push(other)), "BAD_NAME");
  other.clear_header();
  EXPECT_EQ(wire::ReasonOf(Push(other)), "MALFORMED");
}

TEST_F(TransportServiceTest, RowsOfAnotherSizeAreRefusedAndNothingIsStaged) {
  Open open(*stub_);
  v1::PushInboxRequest request = PushRequest(open.answer.mapping(), 1, 0, 8);
  for (const int64_t found : {0, 4, 16, -8}) {
    request.set_row_bytes(found);
    const absl::Status refused = Push(request);
    EXPECT_EQ(wire::ReasonOf(refused), "BAD_SHAPE");
    EXPECT_THAT(refused,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("row_bytes is ", found,
                                      "; it must be 8, as the table's")));
  }
  request.set_row_bytes(8);
  const auto pushed =
      Invoke(*stub_, &v1::TransportService::Stub::PushInbox, request);
  ASSERT_THAT(pushed, IsOk());
  EXPECT_FALSE(pushed->duplicate());
}

TEST_F(TransportServiceTest, IdsInTheInboxAreCheckedAsThoseOfACall) {
  Open open(*stub_);
  const auto inbox = kernels::MakeBackend({})->get()->Map(
      {open.answer.inbox().handle(), open.answer.inbox().offset_bytes(),
       open.answer.inbox().size_bytes()},
      kernels::MapAccess::kWrite);
  ASSERT_THAT(inbox, IsOk());
  inbox->as<int64_t>()[1] = 8;
  const absl::Status refused =
      Push(PushRequest(open.answer.mapping(), 2, 0, 16));
  EXPECT_EQ(wire::ReasonOf(refused), "ROW_OUT_OF_TABLE");
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("1"));
}

// A head call that is sent its header only.
struct OpenHeadCall {
  OpenHeadCall(v1::LmHeadService::Stub& stub, const std::string& header)
      : stream(stub.LinearCrossEntropy(&context)) {
    SetDeadline(context);
    v1::LinearCrossEntropyRequest request;
    ParseText(header, *request.mutable_header());
    stream->Write(request);
  }
  absl::Status End() {
    v1::LinearCrossEntropyResponse answer;
    EXPECT_FALSE(stream->Read(&answer));
    return wire::FromGrpc(stream->Finish());
  }
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LinearCrossEntropyRequest,
                                           v1::LinearCrossEntropyResponse>>
      stream;
};

TEST_F(TransportServiceTest, HeadCallsAreHeldToTheirInbox) {
  ASSERT_THAT(
      server_.CreateTable("tables/d",
                          "row_count: 8 dim: 16 row_dtype: DATA_TYPE_FP32 "
                          "gradient_dtype: DATA_TYPE_FP32 shard_count: 1 "
                          "trainer_count: 1 "
                          "gradient_reduction: GRADIENT_REDUCTION_SUM "
                          "max_contribution_row_count: 10 max_part_count: 2 "
                          "max_pull_bytes: 1048576 dense { "
                          "main_grad_dtype: DATA_TYPE_FP32 "
                          "max_head_token_count: 4 }"),
      IsOk());
  ASSERT_THAT(server_.OpenSession("tables/d", 0, 1), IsOk());
  v1::MapTableRequest request = Request();
  request.set_table("tables/d");
  request.set_head_inbox(true);
  EXPECT_EQ(wire::ReasonOf(Refused(request)), "MALFORMED");  // Both.
  request.set_inbox(false);
  grpc::ClientContext context;
  const auto mapped = stub_->MapTable(&context);
  mapped->Write(request);
  v1::MapTableResponse answer;
  ASSERT_TRUE(mapped->Read(&answer));
  EXPECT_EQ(answer.inbox().size_bytes(), 4 * 16 * 8 + 512);

  const auto heads = v1::LmHeadService::NewStub(server_.channel());
  const auto header = [&](int64_t mapping, int64_t tokens, int64_t hidden,
                          int64_t gradient, const std::string& table) {
    return "table: '" + table +
           "' trainer { session: 1 } event: 1 hidden_dtype: DATA_TYPE_FP32 "
           "mapping: " +
           std::to_string(mapping) + " token_count: " + std::to_string(tokens) +
           " hidden_offset_bytes: " + std::to_string(hidden) +
           " gradient_offset_bytes: " + std::to_string(gradient);
  };
  const auto refused = [&](const std::string& text) {
    return wire::ReasonOf(OpenHeadCall(*heads, text).End());
  };
  const int64_t mapping = answer.mapping();
  const std::string table = "tables/d";
  EXPECT_EQ(refused(header(5, 4, 0, 256, table)), "MAPPING_GONE");
  EXPECT_EQ(refused(header(mapping, 4, -4, 256, table)), "INBOX_RANGE");
  EXPECT_EQ(refused(header(mapping, 4, 0, 1024, table)), "INBOX_RANGE");
  EXPECT_EQ(refused(header(mapping, 4, 0, 258, table)), "BAD_SHAPE");
  EXPECT_EQ(refused(header(mapping, -1, 0, 256, table)), "BAD_COUNT");
  EXPECT_EQ(refused(header(mapping, 4, 0, 256, "tables/t")), "BAD_NAME");
  {
    // In one inbox there is one call; hidden states in messages are refused.
    OpenHeadCall first(*heads, header(mapping, 1, 0, 256, table));
    OpenHeadCall second(*heads, header(mapping, 1, 0, 256, table));
    v1::LinearCrossEntropyRequest inputs;
    inputs.mutable_inputs()->add_targets(3);
    inputs.mutable_inputs()->set_hidden(std::string(64, '\0'));
    first.stream->Write(inputs);
    second.stream->Write(inputs);
    std::vector<std::string> reasons = {wire::ReasonOf(first.End()),
                                        wire::ReasonOf(second.End())};
    EXPECT_THAT(reasons, ::testing::Contains("BAD_SHAPE"));
    EXPECT_THAT(reasons,
                ::testing::Each(::testing::AnyOf("BAD_SHAPE", "BUSY")));
  }
}

TEST_F(TransportServiceTest, AMappingEndsWithItsStream) {
  int64_t mapping = 0;
  {
    Open open(*stub_);
    mapping = open.answer.mapping();
    open.stream->WritesDone();
    v1::MapTableResponse answer;
    // It may be asked to unmap in between.
    while (open.stream->Read(&answer)) EXPECT_TRUE(answer.unmap());
    EXPECT_TRUE(open.stream->Finish().ok());
  }
  EXPECT_EQ(wire::ReasonOf(Push(PushRequest(mapping, 1, 0, 8))),
            "MAPPING_GONE");
}

// Whoever has not unmapped yet is not told of the table before.
TEST_F(TransportServiceTest, AMappingOfATableThatWasMadeAgainIsGone) {
  Open open(*stub_);
  v1::DeleteTableRequest deleted;
  deleted.set_name("tables/t");
  ASSERT_THAT(
      Invoke(server_.tables(), &v1::TableService::Stub::DeleteTable, deleted),
      IsOk());
  ASSERT_THAT(server_.CreateTable("tables/t", kSpec), IsOk());
  ASSERT_THAT(server_.OpenSession("tables/t", 0, 1), IsOk());
  v1::OpenReadWindowRequest window;
  window.set_mapping(open.answer.mapping());
  EXPECT_EQ(
      wire::ReasonOf(
          Invoke(*stub_, &v1::TransportService::Stub::OpenReadWindow, window)
              .status()),
      "MAPPING_GONE");
  EXPECT_EQ(wire::ReasonOf(Push(PushRequest(open.answer.mapping(), 1, 0, 8))),
            "MAPPING_GONE");
  const auto heads = v1::LmHeadService::NewStub(server_.channel());
  EXPECT_EQ(
      wire::ReasonOf(
          OpenHeadCall(*heads,
                       "table: 'tables/t' trainer { session: 1 } event: 1 "
                       "hidden_dtype: DATA_TYPE_FP32 mapping: " +
                           std::to_string(open.answer.mapping()))
              .End()),
      "MAPPING_GONE");
}

TEST(RetryAllocationTest, ShortMemoryIsTriedAgainUntilTheDeadline) {
  int attempts = 0;
  const auto made = server::RetryAllocation<int>(
      absl::Hours(1),
      [&]() -> absl::StatusOr<int> {
        if (++attempts < 3) return absl::ResourceExhaustedError("no memory");
        return 7;
      },
      absl::Nanoseconds(1));
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(*made, 7);
  EXPECT_EQ(attempts, 3);
  EXPECT_THAT(server::RetryAllocation<int>(
                  absl::ZeroDuration(),
                  [&]() -> absl::StatusOr<int> {
                    ++attempts;
                    return absl::ResourceExhaustedError("no memory");
                  }),
              StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
  EXPECT_EQ(attempts, 4);
  EXPECT_THAT(
      server::RetryAllocation<int>(absl::Hours(1),
                                   [&]() -> absl::StatusOr<int> {
                                     ++attempts;
                                     return absl::NotFoundError("no device");
                                   }),
      StatusIs(absl::StatusCode::kNotFound, "no device"));
  EXPECT_EQ(attempts, 5);
}

}  // namespace
}  // namespace rowhouse::testing
