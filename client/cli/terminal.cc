#include "client/cli/terminal.h"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace rowhouse::cli {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

sem_t interrupt_came;

// For what is under way when an interrupt comes.
constexpr absl::Duration kGrace = absl::Seconds(1);

extern "C" void OnInterrupt(int /*signal*/) {
  interrupted = true;
  sem_post(&interrupt_came);
}

}  // namespace

void PrepareStreams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // The lowest number that is free; open for what the stream is not.
    open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

bool UsesColor() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return isatty(STDOUT_FILENO) == 1 && variable("NO_COLOR").empty() &&
         variable("TERM") != "dumb";
}

ProgressScreen StderrScreen(bool quiet) {
  return {
      .terminal = isatty(STDERR_FILENO) == 1,
      .quiet = quiet,
      .write = [](std::string_view text) { std::cerr << text << std::flush; }};
}

absl::Status Confirm(const std::string& what, const std::string& name,
                     bool yes) {
  if (yes) return absl::OkStatus();
  if (isatty(STDIN_FILENO) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("no terminal to ask whether to ", what, ", wanted --yes"));
  }
  std::cerr << "This will " << what << ". Type " << name
            << " to go on: " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (answer == name) return absl::OkStatus();
  return absl::CancelledError("nothing was done");
}

void CatchInterrupts() {
  sem_init(&interrupt_came, 0, 0);
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool Interrupted() { return interrupted; }

void ReleaseInterrupts() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

InterruptWatch::InterruptWatch(std::function<void()> then,
                               std::function<void()> at_last)
    : thread_([this, then = std::move(then), at_last = std::move(at_last)] {
        while (!ending_ && !Interrupted()) sem_wait(&interrupt_came);
        if (!Interrupted()) return;
        then();
        if (at_last != nullptr && LivesUntil(absl::Now() + kGrace)) at_last();
      }) {}

bool InterruptWatch::LivesUntil(absl::Time time) {
  const timespec until = absl::ToTimespec(time);
  while (!ending_ && absl::Now() < time) {
    sem_timedwait(&interrupt_came, &until);
  }
  return !ending_;
}

InterruptWatch::~InterruptWatch() {
  ending_ = true;
  sem_post(&interrupt_came);
  thread_.join();
}

}  // namespace rowhouse::cli
