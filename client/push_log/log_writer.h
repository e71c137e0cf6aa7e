#ifndef ROWHOUSE_CLIENT_PUSH_LOG_LOG_WRITER_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_LOG_WRITER_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/log/v1/push_log.pb.h"

namespace rowhouse::client::push_log {

/// Writes the records of a log file, framed as `format.md` says. What was
/// marked whole is with the system, and outlives this process.
///
/// Errors are `file_fault.h`'s: kNotWritable, with the system's code.
///
/// Thread-compatible.
class LogWriter {
 public:
  /// Errors:
  ///   kAlreadyExists  kFileExists: the file is there, without `overwrite`.
  static absl::StatusOr<std::unique_ptr<LogWriter>> Create(
      const std::string& path, bool overwrite);
  /// Cuts off what is not whole.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  absl::Status Append(const log::v1::LogRecord& record);

  /// What was appended so far stays.
  absl::Status MarkWhole();

  /// Cuts off what was appended since `MarkWhole`.
  absl::Status Rewind();

  /// Writes through to the disk, and closes. Nothing may follow.
  absl::Status Close();

  int64_t size_bytes() const { return size_bytes_; }

 private:
  LogWriter(std::string path, std::FILE* file);

  absl::Status Write(const void* data, size_t size);
  absl::Status Flush();

  const std::string path_;
  std::FILE* file_;  // Null once closed.
  std::string payload_;
  int64_t size_bytes_ = 0;
  int64_t whole_bytes_ = 0;
};

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_LOG_WRITER_H_
