#include "client/push_log/log_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "client/push_log/file_fault.h"
#include "client/push_log/log_frame.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
LogWriter::LogWriter(std::string path, std::FILE* file)
    : path_(std::move(path)), file_(file) {}

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Create(
    const std::string& path, bool overwrite) {
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL);
  const int descriptor = open(path.c_str(), flags, 0644);
  if (descriptor < 0 && errno == EEXIST) {
    return FileFault(absl::StatusCode::kAlreadyExists, kFileExists, path,
                     "is there already and is not to be overwritten");
  }
  if (descriptor < 0)
    return SystemFault(kNotWritable, path, "cannot be created");
  std::FILE* const file = fdopen(descriptor, "wb");
  if (file == nullptr) {
    const absl::Status failed =
        SystemFault(kNotWritable, path, "cannot be opened");
    close(descriptor);
    return failed;
  }
  std::unique_ptr<LogWriter> writer(new LogWriter(path, file));
  const Word version = ToWord(kFormatVersion);
  ROWHOUSE_RETURN_IF_ERROR(writer->Write(kMagic.data(), kMagic.size()));
  ROWHOUSE_RETURN_IF_ERROR(writer->Write(version.data(), version.size()));
  return writer;
}

LogWriter::~LogWriter() {
  if (file_ == nullptr) return;
  // Nobody to tell: the reader passes over what is not whole.
  Rewind().IgnoreError();
  std::fclose(file_);
}

absl::Status LogWriter::Write(const void* data, size_t size) {
  if (std::fwrite(data, 1, size, file_) != size) {
    return SystemFault(kNotWritable, path_, "cannot be written");
  }
  size_bytes_ += static_cast<int64_t>(size);
  return absl::OkStatus();
}

absl::Status LogWriter::Append(const log::v1::LogRecord& record) {
  if (!record.SerializeToString(&payload_) ||
      payload_.size() > kMaxPayloadBytes) {
    return absl::InternalError("a record that is too long for a push log");
  }
  const Word length = ToWord(static_cast<uint32_t>(payload_.size()));
  const Word length_sum = ToWord(Checksum(length));
  const Word payload_sum = ToWord(Checksum(payload_));
  ROWHOUSE_RETURN_IF_ERROR(Write(length.data(), length.size()));
  ROWHOUSE_RETURN_IF_ERROR(Write(length_sum.data(), length_sum.size()));
  ROWHOUSE_RETURN_IF_ERROR(Write(payload_.data(), payload_.size()));
  return Write(payload_sum.data(), payload_sum.size());
}

absl::Status LogWriter::Flush() {
  if (std::fflush(file_) != 0)
    return SystemFault(kNotWritable, path_, "cannot be written");
  return absl::OkStatus();
}

absl::Status LogWriter::MarkWhole() {
  ROWHOUSE_RETURN_IF_ERROR(Flush());
  whole_bytes_ = size_bytes_;
  return absl::OkStatus();
}

absl::Status LogWriter::Rewind() {
  const absl::Status flushed = Flush();  // What does not fit is cut off too.
  std::clearerr(file_);
  if (ftruncate(fileno(file_), whole_bytes_) != 0 ||
      fseeko(file_, whole_bytes_, SEEK_SET) != 0) {
    return SystemFault(kNotWritable, path_, "cannot be cut off");
  }
  size_bytes_ = whole_bytes_;
  return flushed;
}

absl::Status LogWriter::Close() {
  absl::Status closed = MarkWhole();
  if (closed.ok() && fsync(fileno(file_)) != 0 && errno != EINVAL) {
    closed = SystemFault(kNotWritable, path_, "cannot be written");
  }
  if (std::fclose(std::exchange(file_, nullptr)) != 0 && closed.ok()) {
    closed = SystemFault(kNotWritable, path_, "cannot be closed");
  }
  return closed;
}

}  // namespace rowhouse::client::push_log
