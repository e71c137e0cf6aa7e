#ifndef ROWHOUSE_CLIENT_PUSH_LOG_FILE_FAULT_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_FILE_FAULT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

/// Faults of a log's file, which no server has to do with: a reason each
/// (`wire::ReasonOf`) that tells them apart from a server's. None travels.
namespace rowhouse::client::push_log {

/// There is no such file.
inline constexpr std::string_view kNoFile = "LOG_NOT_THERE";
/// It cannot be read.
inline constexpr std::string_view kNotReadable = "LOG_NOT_READABLE";
/// It is no push log, or damaged.
inline constexpr std::string_view kDamaged = "LOG_DAMAGED";
/// It is of another format version.
inline constexpr std::string_view kOtherVersion = "LOG_OF_OTHER_VERSION";
/// A file to be written is there already.
inline constexpr std::string_view kFileExists = "LOG_EXISTS";
/// It cannot be written: a full disk, say.
inline constexpr std::string_view kNotWritable = "LOG_NOT_WRITABLE";

/// `PATH: WHAT`.
absl::Status FileFault(absl::StatusCode code, std::string_view reason,
                       const std::string& path, std::string_view what);

/// `PATH: WHAT: ` and what the system says, with its code.
///
/// REQUIRES: errno is that of the call that failed.
absl::Status SystemFault(std::string_view reason, const std::string& path,
                         std::string_view what);

/// Whether `status` is of one of these.
bool IsFileFault(const absl::Status& status);

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_FILE_FAULT_H_
