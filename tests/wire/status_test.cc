#include "proto/wire/status.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/v1/error_details.pb.h"

namespace rowhouse::wire {
namespace {

using ::testing::EndsWith;
using ::testing::Le;
using ::testing::SizeIs;

absl::Status RoundTrip(const absl::Status& status) {
  return FromGrpc(ToGrpc(status));
}

TEST(StatusTest, OkStaysOk) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(StatusTest, EveryCodeKeepsItsNumber) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "m");
    EXPECT_EQ(ToGrpc(status).error_code(), code);
    EXPECT_EQ(RoundTrip(status), status);
  }
}

TEST(StatusTest, DetailsCross) {
  const absl::Status status =
      Error(absl::StatusCode::kResourceExhausted, "LANE_FULL",
            "4096 tasks wait, 4096 may", {{"limit", "4096"}, {"table", "é"}},
            absl::Milliseconds(1250));
  EXPECT_EQ(RoundTrip(status), status);
  EXPECT_EQ(DetailsOf(RoundTrip(status)), DetailsOf(status));
}

TEST(StatusTest, DetailsAreGoogleRpcMessages) {
  const grpc::Status status = ToGrpc(
      Error(absl::StatusCode::kAborted, "BUSY", "m", {}, absl::Seconds(2)));
  v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 10);
  EXPECT_EQ(details.message(), "m");
  ASSERT_THAT(details.details(), SizeIs(2));
  EXPECT_EQ(details.details(0).type_url(),
            "type.googleapis.com/google.rpc.ErrorInfo");
  EXPECT_EQ(details.details(1).type_url(),
            "type.googleapis.com/google.rpc.RetryInfo");
  v1::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(details.details(0).value()));
  EXPECT_EQ(info.reason(), "BUSY");
  EXPECT_EQ(info.domain(), "rowhouse");
}

TEST(StatusTest, ALongMessageIsCutBetweenCharacters) {
  std::string message;
  while (message.size() < 5000) message += "é";
  const grpc::Status status = ToGrpc(absl::InternalError(message));
  EXPECT_THAT(status.error_message(), SizeIs(Le(1024)));
  EXPECT_THAT(status.error_message(), EndsWith("é..."));
}

TEST(StatusTest, InvalidUtf8IsReplaced) {
  EXPECT_EQ(ToGrpc(absl::InternalError("a\xff\xc3z\xe2\x82")).error_message(),
            "a??z??");
}

TEST(StatusTest, LongDetailsStayBelowTheHeaderLimit) {
  ErrorDetails details;
  details.reason = "MEMORY";
  for (int i = 0; i < 100; ++i) {
    details.metadata["key" + std::to_string(i)] = std::string(10000, 'x');
  }
  const grpc::Status status = ToGrpc(WithDetails(
      absl::ResourceExhaustedError(std::string(9000, '%')), details));
  EXPECT_THAT(status.error_details(), SizeIs(Le(3000)));
  EXPECT_EQ(ReasonOf(FromGrpc(status)), "MEMORY");
}

TEST(StatusTest, DetailsOfOthersAreDropped) {
  v1::StatusDetails details;
  v1::ErrorInfo info;
  info.set_reason("QUOTA");
  info.set_domain("example.com");
  details.add_details()->set_type_url(
      "type.googleapis.com/google.rpc.ErrorInfo");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  const absl::Status status = FromGrpc(grpc::Status(
      grpc::StatusCode::ABORTED, "m", details.SerializeAsString()));
  EXPECT_EQ(status, absl::AbortedError("m"));
  EXPECT_EQ(DetailsOf(status), std::nullopt);
}

TEST(StatusTest, DetailsThatDoNotParseAreDropped) {
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::ABORTED, "m", "\x0a\xff")),
            absl::AbortedError("m"));
}

}  // namespace
}  // namespace rowhouse::wire
