#ifndef ROWHOUSE_CLIENT_CLI_UNITS_H_
#define ROWHOUSE_CLIENT_CLI_UNITS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rowhouse::cli {

/// `84,602,880`.
std::string Count(int64_t count);

/// `512 B`, `1.5 KiB`, `130 GiB`: three digits, in powers of 1024.
std::string Bytes(int64_t size_bytes);

/// `850 us`, `12.5 ms`, `3.2 s`, `2 min 05 s`, `1 h 02 min`.
std::string Span(absl::Duration duration);

/// A number with three significant digits and no exponent: `0.0123`, `12.3`,
/// `12,345`.
std::string Figure(double value);

/// A count with an optional suffix K, M, G (powers of 1000) or Ki, Mi, Gi (of
/// 1024): `64Ki`.
///
/// Errors:
///   kInvalidArgument  it is none, is negative, or does not fit 63 bits.
absl::StatusOr<int64_t> ParseCount(std::string_view text);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_UNITS_H_
