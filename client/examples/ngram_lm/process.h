#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_PROCESS_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rowhouse::ngram_lm {

/// A child process whose standard output is read line by line; its standard
/// error is this process's.
///
/// It is killed, and waited for, when this goes. The kernel also kills it when
/// the thread that started it ends, however that comes about: so start children
/// from the main thread, and no signal that ends it leaves one behind.
///
/// Thread-compatible.
class Process {
 public:
  /// Runs the program `command[0]`, a path, with the other arguments.
  ///
  /// Errors:
  ///   kNotFound           there is no such program, or it may not be run;
  ///                       names it.
  ///   kResourceExhausted  no process or pipe can be made.
  static absl::StatusOr<std::unique_ptr<Process>> Start(
      const std::vector<std::string>& command);

  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  enum class ReadResult { kLine, kTimeout, kEnd };

  /// Waits, for `timeout` at most, for the next line of its output, and puts it
  /// in `line`, without its end. An unfinished last line counts.
  ReadResult ReadLine(std::string& line, absl::Duration timeout);

  /// Its exit code, or minus the signal that ended it; nothing while it runs.
  std::optional<int> Poll();

  /// The same; waits for its end.
  int Wait();

  /// Sends a signal; to a process that has ended, none.
  void Signal(int signal);

 private:
  Process(pid_t pid, int output) : pid_(pid), output_(output) {}

  bool TakeLine(std::string& line);

  pid_t pid_;
  int output_;
  std::string ahead_;  // Read, not yet given out.
  std::optional<int> exit_code_;
};

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_PROCESS_H_
