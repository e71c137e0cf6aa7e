#ifndef ROWHOUSE_CLIENT_CLI_CHECKPOINT_PROGRESS_H_
#define ROWHOUSE_CLIENT_CLI_CHECKPOINT_PROGRESS_H_

#include <optional>
#include <string>

#include "client/cli/command.h"
#include "client/cli/progress.h"
#include "client/cli/terminal.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::cli {

/// Shows how far a call on checkpoints is; the first interrupt cancels the
/// cluster's calls.
///
/// Thread-compatible; one at a time. Must outlive the call.
class CheckpointWatch {
 public:
  /// `what` leads the line.
  CheckpointWatch(std::string what, client::Cluster& cluster,
                  const Context& context);
  CheckpointWatch(const CheckpointWatch&) = delete;
  CheckpointWatch& operator=(const CheckpointWatch&) = delete;

  /// With the time limit of the flags, if there is one: how long such a call
  /// takes is the disk's to say.
  client::CheckpointCallOptions options();

  /// How far it was when it was last told.
  const client::CheckpointProgress& last() const { return last_; }

 private:
  void Show(const client::CheckpointProgress& now);

  const std::string what_;
  const Context& context_;
  std::optional<Progress> progress_;  // From the first byte on.
  client::CheckpointProgress last_;
  std::optional<InterruptWatch> interrupts_;
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CHECKPOINT_PROGRESS_H_
