#ifndef ROWHOUSE_CLIENT_PUSH_LOG_LOG_READER_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_LOG_READER_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/log/v1/push_log.pb.h"

namespace rowhouse::client::push_log {

/// Reads the records of a log file, and checks their bytes.
///
/// Thread-compatible.
class LogReader {
 public:
  /// Errors, all of `file_fault.h`:
  ///   kNotFound       kNoFile: no such file.
  ///   kDataLoss       kDamaged: it is no push log.
  ///   kUnimplemented  kOtherVersion: of another format version.
  ///   Those of the system, kNotReadable.
  static absl::StatusOr<std::unique_ptr<LogReader>> Open(
      const std::string& path);
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// Where the next record begins.
  int64_t offset() const { return offset_; }
  int64_t size_bytes() const { return size_bytes_; }
  const std::string& path() const { return path_; }

  /// Fills `record` with the next one; false at the end of the file, or where
  /// it is cut off within a record.
  ///
  /// Errors:
  ///   kDataLoss  the record is damaged; names its offset.
  absl::StatusOr<bool> Next(log::v1::LogRecord& record);

  /// Goes to a record that was read before.
  absl::Status Seek(int64_t offset);

  /// kDataLoss: names `offset` and the path.
  absl::Status DamageAt(int64_t offset, std::string_view what) const;

 private:
  LogReader(std::string path, std::FILE* file, int64_t size_bytes);

  // False where fewer bytes are left.
  absl::StatusOr<bool> Read(void* out, size_t size);

  const std::string path_;
  std::FILE* const file_;
  const int64_t size_bytes_;
  int64_t offset_ = 0;
  std::string payload_;
};

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_LOG_READER_H_
