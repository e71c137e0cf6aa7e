// LmHeadService over the wire, as a client in any language uses it.

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using absl::StatusCode;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Request = v1::LinearCrossEntropyRequest;
using Response = v1::LinearCrossEntropyResponse;

constexpr char kTable[] = "tables/t";

// 4 rows of zeros: every probability is 1/4.
constexpr char kSpec[] = R"(
  row_count: 4 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 max_pull_bytes: 1024 dense { max_head_token_count: 200000 })";

constexpr char kSparseSpec[] = R"(
  row_count: 4 dim: 2 row_dtype: DATA_TYPE_FP32
  gradient_dtype: DATA_TYPE_FP32 shard_count: 1 trainer_count: 1
  gradient_reduction: GRADIENT_REDUCTION_SUM max_contribution_row_count: 8
  max_part_count: 4 max_pull_bytes: 1024 sparse {})";

/// One call under way.
class HeadStream {
 public:
  explicit HeadStream(v1::LmHeadService::Stub& stub) {
    SetDeadline(context_);
    stream_ = stub.LinearCrossEntropy(&context_);
  }
  ~HeadStream() {
    if (!finished_) context_.TryCancel(), stream_->Finish();
  }

  bool Send(const std::string& text) {
    return stream_->Write(FromText<Request>(text));
  }
  bool Send(const Request& request) { return stream_->Write(request); }
  bool Read(Response& response) { return stream_->Read(&response); }
  void Close() { stream_->WritesDone(); }
  absl::Status Finish() {
    finished_ = true;
    return wire::FromGrpc(stream_->Finish());
  }
  /// Drops what still comes, and ends.
  absl::Status Drain() {
    Response response;
    while (Read(response)) {
    }
    return Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream_;
  bool finished_ = false;
};

std::string Header(int32_t token_count, const std::string& fields = "",
                   int64_t event = 1) {
  return absl::StrCat(
      "header { table: 'tables/t' trainer { session: 1 } "
      "hidden_dtype: DATA_TYPE_FP32 event: ",
      event, " token_count: ", token_count, " ", fields, " }");
}

Request Inputs(int64_t first_token, const std::vector<int64_t>& targets,
               const std::vector<float>& hidden) {
  Request request;
  v1::LinearCrossEntropyInputs& inputs = *request.mutable_inputs();
  inputs.set_first_token(first_token);
  inputs.mutable_targets()->Add(targets.begin(), targets.end());
  inputs.set_hidden(Fp32(hidden));
  return request;
}

// The slice's statistics sent back, with an upstream gradient of 1.
Request Merged(const v1::LinearCrossEntropyStatistics& statistics) {
  Request request;
  v1::LinearCrossEntropyStatistics& merged =
      *request.mutable_merged_statistics();
  merged = statistics;
  merged.clear_target_logits();
  for (int i = 0; i < statistics.max_logits_size(); ++i) {
    merged.add_upstream_gradients(1);
  }
  return request;
}

class LmHeadServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(server_.CreateTable(kTable, kSpec), IsOk());
    ASSERT_THAT(server_.CreateTable("tables/sparse", kSparseSpec), IsOk());
    ASSERT_THAT(server_.OpenSession(kTable, 0, 1), IsOk());
  }

  void Apply(int32_t part_count) {
    ASSERT_THAT(server_.Seal(kTable, 0, 1, 1, part_count), IsOk());
    ASSERT_THAT(
        server_.Commit("table: 'tables/t' trainer { session: 1 } event: 1 "
                       "commit { sessions: 1 adamw { learning_rate: 1 "
                       "bias_correction1: 1 bias_correction2: 1 "
                       "gradient_scale: 1 } }"),
        IsOk());
  }

  std::vector<float> Row(int64_t row_id) {
    const auto pulled =
        server_.Pull(absl::StrCat("table: 'tables/t' row_ids: ", row_id));
    EXPECT_THAT(pulled, IsOk());
    return pulled.ok() ? pulled->Floats() : std::vector<float>();
  }

  /// Until the server has a call that waits for its event.
  void AwaitWaitingCall() {
    while (server_.server().calls().waiting_count() != 1) {
      std::this_thread::yield();
    }
  }

  /// Sends the messages, which must be refused.
  void ExpectRefused(const std::vector<Request>& messages, StatusCode code,
                     const std::string& reason, const std::string& message) {
    HeadStream stream(*stub_);
    for (const Request& request : messages) stream.Send(request);
    stream.Close();
    const absl::Status status = stream.Drain();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(wire::ReasonOf(status), reason) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }

  TestServer server_;
  std::unique_ptr<v1::LmHeadService::Stub> stub_ =
      v1::LmHeadService::NewStub(server_.channel());
};

TEST_F(LmHeadServiceTest, ACallGoesThroughItsFourPhases) {
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(Header(2)));
  ASSERT_TRUE(stream.Send(Inputs(0, {1}, {1, 1})));
  ASSERT_TRUE(stream.Send(Inputs(1, {1}, {1, 1})));
  Response statistics;
  ASSERT_TRUE(stream.Read(statistics));
  EXPECT_THAT(statistics.statistics().max_logits(), ElementsAre(0, 0));
  EXPECT_THAT(statistics.statistics().exp_sums(), ElementsAre(4, 4));
  ASSERT_TRUE(stream.Send(Merged(statistics.statistics())));
  Response gradients;
  ASSERT_TRUE(stream.Read(gradients));
  EXPECT_EQ(gradients.gradients().hidden_gradient(), Fp32({0, 0, 0, 0}));
  EXPECT_THAT(stream.Drain(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1));
  EXPECT_THAT(Row(0), ElementsAre(-1, -1));
  EXPECT_THAT(Row(1), ElementsAre(1, 1));
}

TEST_F(LmHeadServiceTest, LongAnswersComeInMessagesOfAMebibyte) {
  constexpr int kTokens = 150'000;
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(Header(kTokens)));
  const std::vector<int64_t> targets(kTokens / 2, 3);
  const std::vector<float> hidden(kTokens, 1);
  ASSERT_TRUE(stream.Send(Inputs(0, targets, hidden)));
  ASSERT_TRUE(stream.Send(Inputs(kTokens / 2, targets, hidden)));
  std::vector<Request> merged;
  int count = 0;
  for (Response response; count < kTokens;) {
    ASSERT_TRUE(stream.Read(response));
    ASSERT_EQ(response.statistics().first_token(), count);
    count += response.statistics().max_logits_size();
    EXPECT_LE(response.ByteSizeLong(), 4 << 20);
    merged.push_back(Merged(response.statistics()));
  }
  EXPECT_EQ(merged.size(), 2U);
  for (const Request& request : merged) ASSERT_TRUE(stream.Send(request));
  int messages = 0;
  count = 0;
  for (Response response; count < kTokens; ++messages) {
    ASSERT_TRUE(stream.Read(response));
    ASSERT_EQ(response.gradients().first_token(), count);
    EXPECT_LE(response.gradients().hidden_gradient().size(), 1U << 20);
    count +=
        static_cast<int>(response.gradients().hidden_gradient().size()) / 8;
  }
  EXPECT_EQ(messages, 2);
  EXPECT_THAT(stream.Drain(), IsOk());
}

TEST_F(LmHeadServiceTest, WithoutTokensBothAnswersAreEmpty) {
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(Header(0)));
  Response response;
  ASSERT_TRUE(stream.Read(response));
  EXPECT_TRUE(response.has_statistics());
  EXPECT_EQ(response.statistics().max_logits_size(), 0);
  ASSERT_TRUE(stream.Read(response));
  EXPECT_TRUE(response.has_gradients());
  EXPECT_THAT(stream.Drain(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1));
}

TEST_F(LmHeadServiceTest, AnEvaluationEndsAfterTheStatistics) {
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(
      "header { table: 'tables/t' event: 1 hidden_dtype: DATA_TYPE_FP32 "
      "token_count: 1 evaluation: true }"));
  ASSERT_TRUE(stream.Send(Inputs(0, {1}, {1, 1})));
  Response response;
  ASSERT_TRUE(stream.Read(response));
  EXPECT_FALSE(stream.Read(response));
  EXPECT_THAT(stream.Finish(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(0));
}

TEST_F(LmHeadServiceTest, ClosingAfterTheStatisticsStagesNothing) {
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(Header(1)));
  ASSERT_TRUE(stream.Send(Inputs(0, {1}, {1, 1})));
  Response response;
  ASSERT_TRUE(stream.Read(response));
  stream.Close();
  EXPECT_THAT(stream.Drain(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(0));
}

TEST_F(LmHeadServiceTest, BadStreamsAreRefusedAndStageNothing) {
  const auto header = FromText<Request>(Header(2));
  const Request one = Inputs(0, {1}, {1, 1});
  ExpectRefused({}, StatusCode::kInvalidArgument, "MALFORMED", "empty");
  ExpectRefused({one}, StatusCode::kInvalidArgument, "MALFORMED",
                "header is not set");
  ExpectRefused({header, header}, StatusCode::kInvalidArgument, "MALFORMED",
                "inputs until all tokens have come");
  ExpectRefused({header, one}, StatusCode::kInvalidArgument, "BAD_COUNT",
                "open until all tokens have come");
  ExpectRefused({header, one, one}, StatusCode::kInvalidArgument, "BAD_OFFSET",
                "first_token of the inputs is 0");
  ExpectRefused({header, Inputs(0, {1, 9}, {1, 1, 1, 1})},
                StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE",
                "target of token 1 is 9");
  ExpectRefused({header, Inputs(0, {1, 1, 1}, {1, 1, 1, 1, 1, 1})},
                StatusCode::kInvalidArgument, "BAD_COUNT", "3");
  ExpectRefused({header, Inputs(0, {1}, {1})}, StatusCode::kInvalidArgument,
                "BAD_SHAPE", "bytes of hidden states");
  ExpectRefused(
      {FromText<Request>("header { table: 'tables/sparse' event: 1 "
                         "hidden_dtype: DATA_TYPE_FP32 evaluation: true }")},
      StatusCode::kFailedPrecondition, "TABLE_KIND", "sparse table");
  ExpectRefused({FromText<Request>("header { table: 'tables/t' event: 1 }")},
                StatusCode::kInvalidArgument, "MALFORMED",
                "trainer is not set");
  ExpectRefused({FromText<Request>(
                    "header { table: 'tables/t' event: 1 evaluation: true }")},
                StatusCode::kInvalidArgument, "BAD_DTYPE",
                "DATA_TYPE_UNSPECIFIED");
  ExpectRefused({FromText<Request>(Header(2, "", 0))},
                StatusCode::kInvalidArgument, "BAD_EVENT", "header.event is 0");
  ExpectRefused({FromText<Request>(Header(200'001))},
                StatusCode::kInvalidArgument, "BAD_COUNT", "200001");
  ASSERT_NO_FATAL_FAILURE(Apply(0));
  EXPECT_THAT(Row(1), Each(0));
}

TEST_F(LmHeadServiceTest, ACallWithAllTermsGoesThroughItsPhases) {
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(Header(1,
                                 "softcap: 2 class_weights: true "
                                 "weighted_logit_sums: true "
                                 "predicted_rows: true coefficients: true")));
  ASSERT_TRUE(stream.Send("class_weights { class_weights: [0, 1, 2] }"));
  ASSERT_TRUE(stream.Send("class_weights { first_row: 3 class_weights: 0.5 }"));
  ASSERT_TRUE(stream.Send(Inputs(0, {1}, {1, 1})));
  Response statistics;
  ASSERT_TRUE(stream.Read(statistics));
  EXPECT_THAT(statistics.statistics().weighted_logit_sums(), ElementsAre(0));
  EXPECT_THAT(statistics.statistics().predicted_rows(), ElementsAre(0));
  ASSERT_TRUE(stream.Send(
      "merged_statistics { max_logits: 0 exp_sums: 4 upstream_gradients: 1 "
      "target_coefficients: 0.5 smoothing_coefficients: 0.25 }"));
  Response gradients;
  ASSERT_TRUE(stream.Read(gradients));
  EXPECT_THAT(stream.Drain(), IsOk());
  ASSERT_NO_FATAL_FAILURE(Apply(1));
  // p = 0.25, -0.5, -0.25, 0.125.
  EXPECT_THAT(Row(0), ElementsAre(-1, -1));
  EXPECT_THAT(Row(2), ElementsAre(1, 1));
  EXPECT_THAT(Row(3), ElementsAre(-1, -1));
}

TEST_F(LmHeadServiceTest, BadTermsAreRefusedAndStageNothing) {
  for (const char* softcap : {"0", "-1", "inf", "nan"}) {
    ExpectRefused(
        {FromText<Request>(Header(1, absl::StrCat("softcap: ", softcap)))},
        StatusCode::kInvalidArgument, "BAD_SCALAR",
        "it must be finite and above 0");
  }
  const auto header = FromText<Request>(Header(1, "class_weights: true"));
  const Request inputs = Inputs(0, {1}, {1, 1});
  const auto weights = [](const std::string& text) {
    return FromText<Request>(absl::StrCat("class_weights { ", text, " }"));
  };
  ExpectRefused({header, inputs}, StatusCode::kInvalidArgument, "MALFORMED",
                "class_weights until those of all rows have come");
  ExpectRefused({header, weights("class_weights: 1")},
                StatusCode::kInvalidArgument, "BAD_COUNT",
                "open until all class weights have come");
  ExpectRefused({header, weights("class_weights: [1, 1, nan]")},
                StatusCode::kInvalidArgument, "BAD_SCALAR",
                "the class weight of row 2 is nan");
  ExpectRefused({header, weights("first_row: 1 class_weights: 1")},
                StatusCode::kInvalidArgument, "BAD_OFFSET",
                "first_row of the class weights is 1");
  ExpectRefused({header, weights("class_weights: [1, 1, 1, 1, 1]")},
                StatusCode::kInvalidArgument, "BAD_COUNT", "5");
  ExpectRefused({FromText<Request>(Header(1)), weights("class_weights: 1")},
                StatusCode::kInvalidArgument, "MALFORMED",
                "inputs until all tokens have come");
  ASSERT_NO_FATAL_FAILURE(Apply(0));
  EXPECT_THAT(Row(1), Each(0));
}

TEST_F(LmHeadServiceTest, AMergedStatisticThatComesEarlyIsRefused) {
  HeadStream stream(*stub_);
  ASSERT_TRUE(stream.Send(Header(1)));
  stream.Send("merged_statistics { max_logits: 0 }");
  const absl::Status status = stream.Drain();
  EXPECT_EQ(wire::ReasonOf(status), "MALFORMED") << status;
}

// A caller that stalls is told at once when its call is void.
TEST_F(LmHeadServiceTest, AStalledCallEndsWhenItIsRevoked) {
  Response response;
  HeadStream superseded(*stub_);
  ASSERT_TRUE(superseded.Send(Header(1)));
  ASSERT_TRUE(superseded.Send(Inputs(0, {1}, {1, 1})));
  ASSERT_TRUE(superseded.Read(response));
  HeadStream before_statistics(*stub_);
  ASSERT_TRUE(before_statistics.Send(Header(2, "part: 1")));
  ASSERT_TRUE(before_statistics.Send(Inputs(0, {1}, {1, 1})));

  HeadStream next(*stub_);
  ASSERT_TRUE(next.Send(Header(1)));
  ASSERT_TRUE(next.Send(Inputs(0, {1}, {1, 1})));
  ASSERT_TRUE(next.Read(response));
  EXPECT_EQ(wire::ReasonOf(superseded.Drain()), "SUPERSEDED");
  ASSERT_THAT(server_.OpenSession(kTable, 0, 2), IsOk());
  EXPECT_EQ(wire::ReasonOf(before_statistics.Drain()), "FENCED");
  EXPECT_EQ(wire::ReasonOf(next.Drain()), "FENCED");
}

TEST_F(LmHeadServiceTest, ACallThatWaitsEndsWhenItsSessionIsFenced) {
  HeadStream waiting(*stub_);
  ASSERT_TRUE(waiting.Send(Header(1, "", 2)));
  ASSERT_TRUE(waiting.Send(Inputs(0, {1}, {1, 1})));
  AwaitWaitingCall();
  ASSERT_THAT(server_.OpenSession(kTable, 0, 2), IsOk());
  EXPECT_EQ(wire::ReasonOf(waiting.Drain()), "FENCED");
}

TEST_F(LmHeadServiceTest, ADrainEndsACallThatWaits) {
  HeadStream waiting(*stub_);
  ASSERT_TRUE(waiting.Send(Header(1, "", 2)));
  ASSERT_TRUE(waiting.Send(Inputs(0, {1}, {1, 1})));
  AwaitWaitingCall();
  server_.server().Drain();
  EXPECT_EQ(wire::ReasonOf(waiting.Drain()), "DRAINING");
}

}  // namespace
}  // namespace rowhouse::testing
