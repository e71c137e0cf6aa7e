#ifndef ROWHOUSE_PROTO_WIRE_ERROR_H_
#define ROWHOUSE_PROTO_WIRE_ERROR_H_

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace rowhouse::wire {

/// What a fault says to machines: `google.rpc.ErrorInfo` with domain
/// `rowhouse`, and how long to wait before the call is repeated.
struct ErrorDetails {
  std::string reason;  ///< UPPER_SNAKE_CASE; proto/README.md lists them.
  std::map<std::string, std::string> metadata;
  std::optional<absl::Duration> retry_delay;

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

/// A status with details. The message says what was found, then what was
/// wanted; all that varies in it is in `metadata` too.
///
/// Knows neither gRPC nor protobuf; `wire/status.h` puts it on the wire.
absl::Status Error(
    absl::StatusCode code, std::string_view reason, std::string_view message,
    std::initializer_list<std::pair<std::string_view, std::string>> metadata =
        {},
    std::optional<absl::Duration> retry_delay = std::nullopt);

/// `status` with these details.
absl::Status WithDetails(absl::Status status, const ErrorDetails& details);

/// The details of `status`, if it has any.
std::optional<ErrorDetails> DetailsOf(const absl::Status& status);

/// The reason of `status`, or an empty string.
std::string ReasonOf(const absl::Status& status);

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_ERROR_H_
