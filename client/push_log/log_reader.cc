#include "client/push_log/log_reader.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/push_log/file_fault.h"
#include "client/push_log/log_frame.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
LogReader::LogReader(std::string path, std::FILE* file, int64_t size_bytes)
    : path_(std::move(path)), file_(file), size_bytes_(size_bytes) {}

LogReader::~LogReader() { std::fclose(file_); }

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::Open(
    const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return SystemFault(errno == ENOENT ? kNoFile : kNotReadable, path,
                       "cannot be opened");
  }
  struct stat status {};
  const bool sized = fstat(fileno(file), &status) == 0;
  std::unique_ptr<LogReader> reader(new LogReader(path, file, status.st_size));
  if (!sized) return SystemFault(kNotReadable, path, "cannot be read");
  std::array<unsigned char, kPrefixBytes> prefix;
  ROWHOUSE_ASSIGN_OR_RETURN(const bool whole,
                            reader->Read(prefix.data(), prefix.size()));
  if (!whole || std::memcmp(prefix.data(), kMagic.data(), kMagic.size()) != 0) {
    return reader->DamageAt(0, "no push log begins here");
  }
  const uint32_t version = FromWord(prefix.data() + kMagic.size());
  if (version != kFormatVersion) {
    return FileFault(absl::StatusCode::kUnimplemented, kOtherVersion, path,
                     absl::StrCat("a push log of format version ", version,
                                  ", wanted version ", kFormatVersion));
  }
  return reader;
}

absl::Status LogReader::DamageAt(int64_t offset, std::string_view what) const {
  return FileFault(
      absl::StatusCode::kDataLoss, kDamaged, path_,
      absl::StrCat("damaged at offset ", offset, ": ", std::string(what)));
}

absl::StatusOr<bool> LogReader::Read(void* out, size_t size) {
  const size_t read = std::fread(out, 1, size, file_);
  if (read < size && std::ferror(file_) != 0) {
    return SystemFault(kNotReadable, path_, "cannot be read");
  }
  offset_ += static_cast<int64_t>(read);
  return read == size;
}

absl::StatusOr<bool> LogReader::Next(log::v1::LogRecord& record) {
  const int64_t start = offset_;
  std::array<unsigned char, kFrameBytes> frame;
  ROWHOUSE_ASSIGN_OR_RETURN(const bool framed,
                            Read(frame.data(), frame.size()));
  if (!framed) return false;
  const uint32_t length = FromWord(frame.data());
  if (FromWord(frame.data() + sizeof(Word)) != Checksum(ToWord(length)) ||
      length > kMaxPayloadBytes) {
    return DamageAt(start, "the record's length does not match its checksum");
  }
  payload_.resize(length + kChecksumBytes);
  ROWHOUSE_ASSIGN_OR_RETURN(const bool whole,
                            Read(payload_.data(), payload_.size()));
  if (!whole) return false;
  const uint32_t wanted = FromWord(
      reinterpret_cast<const unsigned char*>(payload_.data()) + length);
  payload_.resize(length);
  if (Checksum(payload_) != wanted) {
    return DamageAt(start, "the record does not match its checksum");
  }
  if (!record.ParseFromString(payload_)) {
    return DamageAt(start, "the record cannot be parsed");
  }
  return true;
}

absl::Status LogReader::Seek(int64_t offset) {
  if (fseeko(file_, offset, SEEK_SET) != 0) {
    return SystemFault(kNotReadable, path_, "cannot be read");
  }
  offset_ = offset;
  return absl::OkStatus();
}

}  // namespace rowhouse::client::push_log
