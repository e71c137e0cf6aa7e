#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/process_memory.h"
#include "proto/wire/process.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "server/command_line.h"
#include "server/server.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

constexpr int kDrained = 0;
constexpr int kFault = 1;
constexpr int kBadConfig = 2;
constexpr int kPortNotBound = 3;

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:       // A file or device of the config.
    case absl::StatusCode::kUnimplemented:  // A backend not in this build.
    // A table of the config: for want of memory, or there twice.
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAlreadyExists:
      return kBadConfig;
    case absl::StatusCode::kUnavailable:
      return kPortNotBound;
    default:
      return kFault;
  }
}

int Fail(const absl::Status& status) {
  std::cerr << "rowhouse-server: " << status.message() << '\n';
  return ExitCodeOf(status);
}

// Libraries start threads before `main`, and a blocked signal would go to one
// of them; so signals are handled, not waited for.
std::atomic<int> signal_count = 0;
sem_t signal_came;

extern "C" void OnSignal(int /*signal*/) {
  if (signal_count.fetch_add(1) > 0) _exit(kFault);
  sem_post(&signal_came);
}

void HandleSignals() {
  sem_init(&signal_came, 0, 0);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

// Drains the server on the first SIGTERM or SIGINT, while it lives.
class SignalThread {
 public:
  explicit SignalThread(Server& server)
      : server_(server), thread_([this] { Run(); }) {}

  ~SignalThread() {
    ending_ = true;
    sem_post(&signal_came);
    thread_.join();
  }

 private:
  void Run() {
    while (true) {
      if (sem_wait(&signal_came) != 0) continue;  // Interrupted.
      if (ending_) return;
      spdlog::info("told to end by a signal");
      server_.Drain();
    }
  }

  Server& server_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;  // Last: runs on the members above.
};

int Serve() {
  absl::Status logging = StartLogging();
  if (!logging.ok()) return Fail(logging);
  const absl::StatusOr<config::v1::ServerConfig> config = ConfigFromFlags();
  if (!config.ok()) return Fail(config.status());
  HandleSignals();
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(*config);
  if (!server.ok()) return Fail(server.status());
  const SignalThread signal_thread(**server);
  std::cout << "rowhouse-server listening on " << (*server)->address()
            << std::endl;
  (*server)->Wait();
  return kDrained;
}

int Main(std::span<const char* const> arguments) {
  const absl::StatusOr<Task> task = ParseCommandLine(arguments);
  if (!task.ok()) {
    std::cerr << "rowhouse-server: " << task.status().message()
              << "; --help lists the flags\n";
    return kBadConfig;
  }
  switch (*task) {
    case Task::kHelp:
      std::cout << HelpText();
      return kDrained;
    case Task::kVersion:
      std::cout << "rowhouse-server " << Version() << '\n';
      return kDrained;
    case Task::kServe:
      break;
  }
  kernels::KeepFreedMemory();
  wire::ReceiveInLargePieces();
  return Serve();
}

}  // namespace
}  // namespace rowhouse::server

int main(int argc, char** argv) {
  return rowhouse::server::Main(
      {argv + 1, static_cast<size_t>(argc > 0 ? argc - 1 : 0)});
}
