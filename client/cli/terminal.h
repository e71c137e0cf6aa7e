#ifndef ROWHOUSE_CLIENT_CLI_TERMINAL_H_
#define ROWHOUSE_CLIENT_CLI_TERMINAL_H_

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/progress.h"

namespace rowhouse::cli {

/// At the start of the process: a write to a pipe that nobody reads fails
/// instead of ending the process; and a standard stream that is closed stays
/// unusable, where the next file or connection would become it.
void PrepareStreams();

/// Whether stdout takes colours: a terminal that is not `dumb`, and NO_COLOR is
/// not set.
bool UsesColor();

/// Progress on stderr; `quiet` shows none.
ProgressScreen StderrScreen(bool quiet);

/// Asks on the terminal whether to do `what`: `name` is to be typed; `yes`
/// answers in advance.
///
/// Errors:
///   kInvalidArgument  there is no terminal to ask on, and no `yes`.
///   kCancelled        the answer is another.
absl::Status Confirm(const std::string& what, const std::string& name,
                     bool yes);

/// From now on the first SIGINT or SIGTERM only sets `Interrupted`; a second
/// one ends the process.
void CatchInterrupts();
bool Interrupted();

/// From now on any of them ends the process.
void ReleaseInterrupts();

/// Calls `then` once `Interrupted`, on a thread of its own, while this lives;
/// and `at_last` if it still lives a second later.
///
/// REQUIRES: `CatchInterrupts` was called; one watch at a time.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::function<void()> then,
                          std::function<void()> at_last = nullptr);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  bool LivesUntil(absl::Time time);

  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TERMINAL_H_
