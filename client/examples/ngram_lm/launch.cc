#include "client/examples/ngram_lm/launch.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/examples/ngram_lm/options.h"
#include "client/examples/ngram_lm/process.h"
#include "client/examples/ngram_lm/text.h"

namespace rowhouse::ngram_lm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kListening = "rowhouse-server listening on ";
constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr absl::Duration kLookInterval = absl::Milliseconds(100);

struct Child {
  std::string name;
  std::unique_ptr<Process> process;
};

// This program's own file.
std::string Self() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

// Beside this program, as installed, or where the build puts it.
std::string ServerOfSelf() {
  const fs::path folder = fs::path(Self()).parent_path();
  std::error_code error;
  if (fs::exists(folder / "rowhouse-server", error)) {
    return folder / "rowhouse-server";
  }
  return (folder / "../../../server/rowhouse-server").lexically_normal();
}

std::string EndOf(int code) {
  return code < 0 ? absl::StrCat("was ended by signal ", -code)
                  : absl::StrCat("ended with exit code ", code);
}

class Launcher {
 public:
  explicit Launcher(const Options& options) : options_(options) {}

  absl::Status Run(const std::vector<std::string>& arguments) {
    absl::Status status = StartServers();
    if (status.ok()) status = StartTrainers(arguments);
    if (status.ok()) status = Follow();
    if (status.ok()) status = StopServers();
    return status;
  }

 private:
  absl::StatusOr<std::string> WriteConfig() const {
    std::error_code error;
    fs::create_directories(options_.output, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat(
          "cannot make the folder ", options_.output, ": ", error.message()));
    }
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const std::string path = options_.output + "/servers.textproto";
    const absl::Status written = WriteFile(
        path, absl::StrCat("cluster_id: \"ngram-lm\"\nserver_count: ",
                           options_.server_count(), "\nthread_count: ",
                           std::max(cores / options_.server_count(), 1), "\n"));
    if (!written.ok()) return written;
    return path;
  }

  absl::Status StartServers() {
    const absl::StatusOr<std::string> config = WriteConfig();
    if (!config.ok()) return config.status();
    const std::string program =
        options_.server.empty() ? ServerOfSelf() : options_.server;
    for (int32_t index = 0; index < options_.server_count(); ++index) {
      auto process =
          Process::Start({program, absl::StrCat("--config=", *config),
                          absl::StrCat("--server_index=", index),
                          "--backend=" + options_.backend,
                          absl::StrCat("--device=", options_.device),
                          "--listen=127.0.0.1:0", "--log_level=warn"});
      if (!process.ok()) return process.status();
      servers_.push_back({absl::StrCat("server ", index), *std::move(process)});
    }
    for (Child& server : servers_) {
      std::string line;
      const auto result = server.process->ReadLine(line, kStartTimeout);
      if (result != Process::ReadResult::kLine ||
          !line.starts_with(kListening)) {
        return absl::UnavailableError(
            absl::StrCat(server.name, " did not say where it listens"));
      }
      addresses_.push_back(line.substr(kListening.size()));
      std::printf("%s: %s\n", server.name.c_str(), addresses_.back().c_str());
      std::fflush(stdout);
    }
    return absl::OkStatus();
  }

  absl::Status StartTrainers(const std::vector<std::string>& arguments) {
    for (int32_t rank = 0; rank < options_.trainers; ++rank) {
      std::vector<std::string> command = {Self()};
      command.insert(command.end(), arguments.begin(), arguments.end());
      command.push_back(absl::StrCat("--trainer_rank=", rank));
      command.push_back(
          absl::StrCat("--addresses=", absl::StrJoin(addresses_, ",")));
      auto process = Process::Start(command);
      if (!process.ok()) return process.status();
      trainers_.push_back(
          {absl::StrCat("trainer ", rank), *std::move(process)});
    }
    return absl::OkStatus();
  }

  // Copies the trainers' lines until all have ended.
  absl::Status Follow() {
    std::vector<bool> open(trainers_.size(), true);
    while (std::find(open.begin(), open.end(), true) != open.end()) {
      for (size_t rank = 0; rank < trainers_.size(); ++rank) {
        if (open[rank]) open[rank] = Copy(*trainers_[rank].process);
      }
      for (const Child& trainer : trainers_) {
        const auto code = trainer.process->Poll();
        if (code.value_or(0) != 0) return Ended(trainer, *code);
      }
      for (const Child& server : servers_) {
        const auto code = server.process->Poll();
        if (code.has_value()) return Ended(server, *code);
      }
    }
    for (const Child& trainer : trainers_) {
      const int code = trainer.process->Wait();
      if (code != 0) return Ended(trainer, code);
    }
    return absl::OkStatus();
  }

  // What is there to read; false once there will be no more.
  static bool Copy(Process& process) {
    std::string line;
    while (true) {
      switch (process.ReadLine(line, kLookInterval)) {
        case Process::ReadResult::kLine:
          std::printf("%s\n", line.c_str());
          std::fflush(stdout);
          break;
        case Process::ReadResult::kTimeout:
          return true;
        case Process::ReadResult::kEnd:
          return false;
      }
    }
  }

  absl::Status StopServers() {
    for (const Child& server : servers_) server.process->Signal(SIGTERM);
    for (const Child& server : servers_) {
      const int code = server.process->Wait();
      if (code != 0) return Ended(server, code);
    }
    return absl::OkStatus();
  }

  static absl::Status Ended(const Child& child, int code) {
    return absl::AbortedError(absl::StrCat(child.name, " ", EndOf(code)));
  }

  const Options& options_;
  std::vector<Child> servers_;
  std::vector<std::string> addresses_;
  std::vector<Child> trainers_;  // Last: they end before their servers.
};

}  // namespace

absl::Status Launch(const Options& options,
                    const std::vector<std::string>& arguments) {
  return Launcher(options).Run(arguments);
}

}  // namespace rowhouse::ngram_lm
