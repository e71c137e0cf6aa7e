#ifndef ROWHOUSE_SERVER_CHECKPOINT_FILE_ERRORS_H_
#define ROWHOUSE_SERVER_CHECKPOINT_FILE_ERRORS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace rowhouse::server {

/// DATA_LOSS DAMAGED: "`file`, at byte `offset`: `found`", with both as
/// metadata.
absl::Status DamagedError(std::string_view file, int64_t offset,
                          std::string_view found);

/// NOT_WRITABLE: "`file` cannot be written: `why`".
absl::Status NotWritableError(absl::StatusCode code, std::string_view file,
                              std::string_view why);

/// NOT_READABLE: "`file` cannot be read: `why`".
absl::Status NotReadableError(absl::StatusCode code, std::string_view file,
                              std::string_view why);

/// NOT_FOUND NO_SUCH_CHECKPOINT: `what` is said to be missing; `file` is what
/// would be there.
absl::Status NoSuchCheckpointError(std::string_view what,
                                   std::string_view file);

/// FAILED_PRECONDITION CHECKPOINT_INCOMPLETE: `file` is missing or, by `what`,
/// not of the checkpoint.
absl::Status IncompleteError(std::string_view what, std::string_view file);

/// ALREADY_EXISTS CHECKPOINT_EXISTS.
absl::Status CheckpointExistsError(std::string_view checkpoint,
                                   std::string_view file);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_FILE_ERRORS_H_
