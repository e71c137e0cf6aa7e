#include "server/checkpoint/file_errors.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

absl::Status DamagedError(std::string_view file, int64_t offset,
                          std::string_view found) {
  return wire::Error(
      absl::StatusCode::kDataLoss, reasons::kDamaged,
      absl::StrCat(View(file), ", at byte ", offset, ": ", View(found)),
      {{"file", std::string(file)}, {"offset", absl::StrCat(offset)}});
}

absl::Status NotWritableError(absl::StatusCode code, std::string_view file,
                              std::string_view why) {
  return wire::Error(
      code, reasons::kNotWritable,
      absl::StrCat(View(file), " cannot be written: ", View(why)),
      {{"file", std::string(file)}});
}

absl::Status NotReadableError(absl::StatusCode code, std::string_view file,
                              std::string_view why) {
  return wire::Error(code, reasons::kNotReadable,
                     absl::StrCat(View(file), " cannot be read: ", View(why)),
                     {{"file", std::string(file)}});
}

absl::Status NoSuchCheckpointError(std::string_view what,
                                   std::string_view file) {
  return wire::Error(
      absl::StatusCode::kNotFound, reasons::kNoSuchCheckpoint,
      absl::StrCat("there is no ", View(what), ": no file ", View(file)),
      {{"file", std::string(file)}});
}

absl::Status IncompleteError(std::string_view what, std::string_view file) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, reasons::kCheckpointIncomplete,
      absl::StrCat("the checkpoint is not complete: ", View(what), " (",
                   View(file), ")"),
      {{"file", std::string(file)}});
}

absl::Status CheckpointExistsError(std::string_view checkpoint,
                                   std::string_view file) {
  return wire::Error(
      absl::StatusCode::kAlreadyExists, reasons::kCheckpointExists,
      absl::StrCat("checkpoint ", View(checkpoint),
                   " is there already, and whole (", View(file), ")"),
      {{"file", std::string(file)}});
}

}  // namespace rowhouse::server
