#include "tests/integration/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace rowhouse::testing {

Process::Process(const std::vector<std::string>& command) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  EXPECT_EQ(pipe2(out.data(), O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(err.data(), O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  std::vector<std::string> arguments = command;
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  EXPECT_EQ(posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(),
                        environ),
            0);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  close(err[1]);
  out_.file = out[0];
  err_.file = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    Wait();
  }
  close(out_.file);
  close(err_.file);
}

void Process::Signal(int signal) { EXPECT_EQ(kill(pid_, signal), 0); }

int Process::Wait() {
  if (pid_ < 0) return exit_code_;
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return exit_code_;
}

bool Process::ReadMore(Stream& stream) {
  std::array<char, 4096> block{};
  const ssize_t size = read(stream.file, block.data(), block.size());
  if (size <= 0) return false;
  stream.ahead.append(block.data(), static_cast<size_t>(size));
  return true;
}

std::string Process::ReadLine(Stream& stream) {
  size_t end = 0;
  while ((end = stream.ahead.find('\n')) == std::string::npos) {
    if (!ReadMore(stream)) return std::exchange(stream.ahead, std::string());
  }
  std::string line = stream.ahead.substr(0, end);
  stream.ahead.erase(0, end + 1);
  return line;
}

std::string Process::ReadRest(Stream& stream) {
  while (ReadMore(stream)) {
  }
  return std::exchange(stream.ahead, std::string());
}

}  // namespace rowhouse::testing
