#ifndef ROWHOUSE_TESTS_INTEGRATION_PROCESS_H_
#define ROWHOUSE_TESTS_INTEGRATION_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace rowhouse::testing {

/// A child process whose output the test reads. It is killed, and waited for,
/// when this goes.
class Process {
 public:
  /// Runs `command[0]` with the other arguments.
  explicit Process(const std::vector<std::string>& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// The next line of its stdout or stderr, without the line's end; an empty
  /// string at the end of the stream. Waits for it.
  std::string ReadOut() { return ReadLine(out_); }
  std::string ReadErr() { return ReadLine(err_); }

  /// All that is left of a stream. Waits for its end.
  std::string RestOfOut() { return ReadRest(out_); }
  std::string RestOfErr() { return ReadRest(err_); }

  void Signal(int signal);

  /// Its exit code, or minus the signal that ended it. Waits for its end.
  int Wait();

 private:
  struct Stream {
    int file = -1;
    std::string ahead;  // Read, not yet given out.
  };

  static bool ReadMore(Stream& stream);
  static std::string ReadLine(Stream& stream);
  static std::string ReadRest(Stream& stream);

  pid_t pid_ = -1;  // -1 once waited for.
  int exit_code_ = 0;
  Stream out_;
  Stream err_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_INTEGRATION_PROCESS_H_
