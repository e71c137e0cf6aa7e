#ifndef ROWHOUSE_SERVER_FILE_WORK_H_
#define ROWHOUSE_SERVER_FILE_WORK_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint_work.h"

namespace rowhouse::server {

/// Runs `work` on a thread of its own: it tells its progress, and ends,
/// kCancelled, where that returns false.
std::unique_ptr<CheckpointWork> RunFileWork(
    absl::AnyInvocable<absl::Status(FileProgress)> work,
    absl::AnyInvocable<void(absl::Status)> done);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_FILE_WORK_H_
