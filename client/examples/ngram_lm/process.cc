#include "client/examples/ngram_lm/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rowhouse::ngram_lm {
namespace {

// What the child says before it becomes the program: nothing, or an errno.
struct Pipes {
  std::array<int, 2> output = {-1, -1};
  std::array<int, 2> failure = {-1, -1};

  ~Pipes() {
    for (const int file : {output[0], output[1], failure[0], failure[1]}) {
      if (file >= 0) close(file);
    }
  }
};

// Only what is safe between fork and exec.
[[noreturn]] void Become(char* const* command, const Pipes& pipes,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It died before that.
  dup2(pipes.output[1], STDOUT_FILENO);
  execv(command[0], command);
  const int error = errno;
  (void)!write(pipes.failure[1], &error, sizeof(error));
  _exit(127);
}

int EndOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

pid_t WaitFor(pid_t pid, int& status, int options) {
  pid_t ended = -1;
  do {
    ended = waitpid(pid, &status, options);
  } while (ended < 0 && errno == EINTR);
  return ended;
}

absl::Status NoProcess() {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot start a process: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Start(
    const std::vector<std::string>& command) {
  if (command.empty()) return absl::NotFoundError("no program is named");
  std::vector<std::string> arguments = command;
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  Pipes pipes;
  if (pipe2(pipes.output.data(), O_CLOEXEC) != 0 ||
      pipe2(pipes.failure.data(), O_CLOEXEC) != 0) {
    return NoProcess();
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return NoProcess();
  if (pid == 0) Become(pointers.data(), pipes, parent);

  close(std::exchange(pipes.failure[1], -1));
  int error = 0;
  if (read(pipes.failure[0], &error, sizeof(error)) > 0) {
    int status = 0;
    WaitFor(pid, status, 0);
    return absl::NotFoundError(
        absl::StrCat("cannot run ", command[0], ": ", std::strerror(error)));
  }
  return std::unique_ptr<Process>(
      new Process(pid, std::exchange(pipes.output[0], -1)));
}

Process::~Process() {
  Signal(SIGKILL);
  Wait();
  close(output_);
}

bool Process::TakeLine(std::string& line) {
  const size_t end = ahead_.find('\n');
  if (end == std::string::npos) return false;
  line = ahead_.substr(0, end);
  ahead_.erase(0, end + 1);
  return true;
}

Process::ReadResult Process::ReadLine(std::string& line,
                                      absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!TakeLine(line)) {
    const absl::Duration left = std::clamp(
        deadline - absl::Now(), absl::ZeroDuration(), absl::Hours(1));
    pollfd wanted = {.fd = output_, .events = POLLIN, .revents = 0};
    const int ready =
        poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      if (absl::Now() >= deadline) return ReadResult::kTimeout;
      continue;
    }
    std::array<char, 4096> block{};
    const ssize_t size = read(output_, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size > 0) {
      ahead_.append(block.data(), static_cast<size_t>(size));
      continue;
    }
    if (ahead_.empty()) return ReadResult::kEnd;
    line = std::exchange(ahead_, std::string());
    return ReadResult::kLine;
  }
  return ReadResult::kLine;
}

std::optional<int> Process::Poll() {
  int status = 0;
  if (!exit_code_.has_value() && WaitFor(pid_, status, WNOHANG) == pid_) {
    exit_code_ = EndOf(status);
  }
  return exit_code_;
}

int Process::Wait() {
  int status = 0;
  if (!exit_code_.has_value()) {
    exit_code_ = WaitFor(pid_, status, 0) == pid_ ? EndOf(status) : -1;
  }
  return *exit_code_;
}

void Process::Signal(int signal) {
  if (!exit_code_.has_value()) kill(pid_, signal);
}

}  // namespace rowhouse::ngram_lm
