#include "proto/wire/error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rowhouse::wire {
namespace {

constexpr char kPayloadType[] = "rowhouse/error_details";

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

// A payload is a list of texts, each written as `<bytes>:<text>`: the reason,
// the retry delay in nanoseconds or nothing, then keys and values.
void AppendText(std::string_view text, std::string& out) {
  absl::StrAppend(&out, text.size(), ":", View(text));
}

std::optional<std::string> TakeText(std::string_view& in) {
  const size_t colon = in.find(':');
  uint64_t size = 0;
  if (colon == std::string_view::npos ||
      !absl::SimpleAtoi(View(in.substr(0, colon)), &size)) {
    return std::nullopt;
  }
  in.remove_prefix(colon + 1);
  if (in.size() < size) return std::nullopt;
  std::string text(in.substr(0, size));
  in.remove_prefix(size);
  return text;
}

std::string Encode(const ErrorDetails& details) {
  std::string out;
  AppendText(details.reason, out);
  AppendText(details.retry_delay.has_value()
                 ? absl::StrCat(absl::ToInt64Nanoseconds(*details.retry_delay))
                 : "",
             out);
  for (const auto& [key, value] : details.metadata) {
    AppendText(key, out);
    AppendText(value, out);
  }
  return out;
}

std::optional<ErrorDetails> Decode(std::string_view in) {
  ErrorDetails details;
  std::optional<std::string> reason = TakeText(in);
  const std::optional<std::string> delay = TakeText(in);
  if (!reason.has_value() || !delay.has_value()) return std::nullopt;
  details.reason = *std::move(reason);
  if (!delay->empty()) {
    int64_t nanoseconds = 0;
    if (!absl::SimpleAtoi(*delay, &nanoseconds)) return std::nullopt;
    details.retry_delay = absl::Nanoseconds(nanoseconds);
  }
  while (!in.empty()) {
    std::optional<std::string> key = TakeText(in);
    std::optional<std::string> value = TakeText(in);
    if (!key.has_value() || !value.has_value()) return std::nullopt;
    details.metadata[*std::move(key)] = *std::move(value);
  }
  return details;
}

}  // namespace

absl::Status Error(
    absl::StatusCode code, std::string_view reason, std::string_view message,
    std::initializer_list<std::pair<std::string_view, std::string>> metadata,
    std::optional<absl::Duration> retry_delay) {
  ErrorDetails details;
  details.reason = std::string(reason);
  details.retry_delay = retry_delay;
  for (const auto& [key, value] : metadata) {
    details.metadata[std::string(key)] = value;
  }
  return WithDetails(absl::Status(code, View(message)), details);
}

absl::Status WithDetails(absl::Status status, const ErrorDetails& details) {
  status.SetPayload(kPayloadType, absl::Cord(Encode(details)));
  return status;
}

std::optional<ErrorDetails> DetailsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadType);
  if (!payload.has_value()) return std::nullopt;
  return Decode(std::string(*payload));
}

std::string ReasonOf(const absl::Status& status) {
  const std::optional<ErrorDetails> details = DetailsOf(status);
  return details.has_value() ? details->reason : std::string();
}

}  // namespace rowhouse::wire
