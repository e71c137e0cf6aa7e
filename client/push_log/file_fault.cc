#include "client/push_log/file_fault.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"

namespace rowhouse::client::push_log {

absl::Status FileFault(absl::StatusCode code, std::string_view reason,
                       const std::string& path, std::string_view what) {
  return wire::Error(code, reason, absl::StrCat(path, ": ", std::string(what)));
}

absl::Status SystemFault(std::string_view reason, const std::string& path,
                         std::string_view what) {
  const int fault = errno;
  return FileFault(absl::ErrnoToStatusCode(fault), reason, path,
                   absl::StrCat(std::string(what), ": ", std::strerror(fault)));
}

bool IsFileFault(const absl::Status& status) {
  constexpr std::array kReasons = {kNoFile,       kNotReadable, kDamaged,
                                   kOtherVersion, kFileExists,  kNotWritable};
  return std::find(kReasons.begin(), kReasons.end(),
                   std::string_view(wire::ReasonOf(status))) != kReasons.end();
}

}  // namespace rowhouse::client::push_log
