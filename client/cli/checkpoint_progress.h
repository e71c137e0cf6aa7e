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

  /// Of the call that begins now; with the time limit of the flags, if there is
  /// one: how long such a call takes is the disk's to say.
  client::CheckpointCallOptions options();

  /// Ends the line, for others to be printed; returns how far the call was when
  /// it was last told.
  client::CheckpointProgress End();

 private:
  void Begin();
  void Show(const client::CheckpointProgress& now);

  const std::string what_;
  const Context& context_;
  // Its time runs from when there was last nothing done: events may be awaited
  // before that.
  std::optional<Progress> progress_;
  client::CheckpointProgress last_;
  std::optional<InterruptWatch> interrupts_;
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CHECKPOINT_PROGRESS_H_
