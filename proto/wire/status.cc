#include "proto/wire/status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "rowhouse/v1/error_details.pb.h"

namespace rowhouse::wire {
namespace {

constexpr std::string_view kDomain = "rowhouse";
constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

// A peer with default settings refuses more than 8 KiB of metadata. The message
// goes out percent-encoded (up to 3 bytes a byte) and again in the details,
// which go out in base64 (4 bytes for 3): 3 * 1024 + 4 * 3000 / 3 = 7072.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxDetailsBytes = 3000;
constexpr size_t kMaxReasonBytes = 64;
constexpr size_t kMaxKeyBytes = 64;
constexpr size_t kMaxValueBytes = 256;

static_assert(static_cast<int>(absl::StatusCode::kCancelled) ==
              static_cast<int>(grpc::StatusCode::CANCELLED));
static_assert(static_cast<int>(absl::StatusCode::kInvalidArgument) ==
              static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
              static_cast<int>(grpc::StatusCode::UNAUTHENTICATED));

// Length of the UTF-8 sequence that `text` begins with, 0 when it is not valid.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong =
      (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool not_a_character =
      (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f);
  return overlong || not_a_character ? 0 : length;
}

// `text` as valid UTF-8 of at most `max_bytes`; "..." marks a cut.
std::string Bounded(std::string_view text, size_t max_bytes) {
  constexpr std::string_view kCut = "...";
  std::string result;
  size_t safe_size = 0;  // Longest prefix that leaves room for the mark.
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (result.size() + (length == 0 ? 1 : length) > max_bytes) {
      result.resize(safe_size);
      return result.append(kCut);
    }
    result.append(length == 0 ? "?" : text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
    if (result.size() + kCut.size() <= max_bytes) safe_size = result.size();
  }
  return result;
}

v1::StatusDetails ToProto(grpc::StatusCode code, const std::string& message,
                          const ErrorDetails& details) {
  v1::StatusDetails status;
  status.set_code(code);
  status.set_message(message);
  v1::ErrorInfo info;
  info.set_reason(Bounded(details.reason, kMaxReasonBytes));
  info.set_domain(std::string(kDomain));
  size_t size = status.ByteSizeLong() + 256;  // Reason, domain, type URLs.
  for (const auto& [key, value] : details.metadata) {
    std::string bounded_key = Bounded(key, kMaxKeyBytes);
    std::string bounded_value = Bounded(value, kMaxValueBytes);
    size += bounded_key.size() + bounded_value.size() + 8;
    if (size > kMaxDetailsBytes) break;
    (*info.mutable_metadata())[std::move(bounded_key)] =
        std::move(bounded_value);
  }
  google::protobuf::Any* any = status.add_details();
  any->set_type_url(kErrorInfoUrl);
  info.SerializeToString(any->mutable_value());
  if (details.retry_delay.has_value()) {
    v1::RetryInfo retry;
    const absl::Duration delay = *details.retry_delay;
    absl::Duration rest;
    const int64_t seconds = absl::IDivDuration(delay, absl::Seconds(1), &rest);
    retry.mutable_retry_delay()->set_seconds(seconds);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
    any = status.add_details();
    any->set_type_url(kRetryInfoUrl);
    retry.SerializeToString(any->mutable_value());
  }
  return status;
}

// The ErrorInfo of our domain, with the RetryInfo, or no value.
std::optional<ErrorDetails> FromProto(const v1::StatusDetails& status) {
  std::optional<ErrorDetails> details;
  std::optional<absl::Duration> retry_delay;
  for (const google::protobuf::Any& any : status.details()) {
    v1::ErrorInfo info;
    v1::RetryInfo retry;
    if (any.type_url() == kErrorInfoUrl && info.ParseFromString(any.value()) &&
        info.domain() == kDomain) {
      details.emplace();
      details->reason = info.reason();
      details->metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (any.type_url() == kRetryInfoUrl &&
               retry.ParseFromString(any.value())) {
      retry_delay = absl::Seconds(retry.retry_delay().seconds()) +
                    absl::Nanoseconds(retry.retry_delay().nanos());
    }
  }
  if (details.has_value()) details->retry_delay = retry_delay;
  return details;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const absl::string_view text = status.message();
  std::string message =
      Bounded(std::string_view(text.data(), text.size()), kMaxMessageBytes);
  const std::optional<ErrorDetails> details = DetailsOf(status);
  if (!details.has_value()) return grpc::Status(code, message);
  std::string serialized = ToProto(code, message, *details).SerializeAsString();
  return grpc::Status(code, message, serialized);
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  v1::StatusDetails proto;
  if (status.error_details().empty() ||
      !proto.ParseFromString(status.error_details())) {
    return result;
  }
  const std::optional<ErrorDetails> details = FromProto(proto);
  return details.has_value() ? WithDetails(std::move(result), *details)
                             : result;
}

}  // namespace rowhouse::wire
