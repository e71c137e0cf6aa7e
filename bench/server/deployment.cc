#include "bench/server/deployment.h"

#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/support/check.h"
#include "bench/support/run.h"
#include "proto/wire/process.h"

namespace rowhouse::bench {

namespace fs = std::filesystem;

// A new folder, removed when this goes.
class Deployment::TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((fs::temp_directory_path() / "rowhouse_bench_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      Check(absl::UnavailableError(absl::StrCat("cannot make ", path_)));
    }
  }
  ~TemporaryFolder() { fs::remove_all(path_); }

  std::string File(std::string_view name) const {
    return absl::StrCat(path_, "/", std::string(name));
  }

 private:
  std::string path_;
};

namespace {

using ngram_lm::Process;

constexpr std::string_view kListening = "rowhouse-server listening on ";

// The server of this build; where it has but a name, the one beside this
// program.
std::string ServerBinary() {
  const fs::path server = ROWHOUSE_SERVER_BINARY;
  if (server.is_absolute()) return server;
  return fs::read_symlink("/proc/self/exe").parent_path() / server;
}

std::string Config(const std::string& socket, size_t index,
                   const std::vector<int>& devices, std::string_view more) {
  const bool cpu = TheRun().backend.kind == kernels::BackendKind::kCpu;
  return absl::StrCat(
      "cluster_id: \"bench\"\nserver_count: ", devices.size(),
      "\nserver_index: ", index, "\nbackend: \"", cpu ? "cpu" : "cuda",
      "\"\ndevice_index: ", devices[index], "\nthread_count: ", ThreadCount(),
      "\nmore_listen_addresses: \"", socket, "\"\n", std::string(more));
}

double SecondsOf(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

Deployment::Deployment(std::string_view more, const std::vector<int>& devices) {
  wire::ReceiveInLargePieces();  // As the tools do.
  folder_ = std::make_unique<TemporaryFolder>();
  addresses_.resize(2);
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string file =
        folder_->File(absl::StrCat("server", i, ".textproto"));
    const std::string socket =
        absl::StrCat("unix:", folder_->File(absl::StrCat("socket", i)));
    std::ofstream(file) << Config(socket, i, devices, more);
    servers_.push_back(
        Check(Process::Start({ServerBinary(), absl::StrCat("--config=", file),
                              "--listen=127.0.0.1:0", "--log_level=warn"})));
    std::string line;
    servers_.back()->ReadLine(line, absl::Seconds(30));
    if (!line.starts_with(kListening)) {
      Check(absl::UnavailableError("the server did not start"));
    }
    addresses_[0].push_back(line.substr(kListening.size()));
    addresses_[1].push_back(socket);
  }
  for (const std::vector<std::string>& addresses : addresses_) {
    client::ClusterOptions options;
    options.addresses = addresses;
    if (OnGpu()) options.device_index = TheRun().backend.device_index;
    clusters_.push_back(Check(client::Cluster::Connect(options)));
  }
}

Deployment::~Deployment() = default;

std::vector<std::unique_ptr<client::Trainer>> Deployment::MakeTable(
    const std::string& name, const client::TableSpec& spec, Wire wire) {
  client::Cluster& cluster = this->cluster(wire);
  Check(cluster.CreateTable(name, spec).status());
  std::vector<std::unique_ptr<client::Trainer>> trainers;
  for (int32_t rank = 0; rank < spec.trainer_count; ++rank) {
    trainers.push_back(Check(client::Trainer::Join(cluster, name, rank)));
  }
  return trainers;
}

CpuSeconds Deployment::Cpu() const {
  clockid_t server{};
  clock_getcpuclockid(servers_.front()->pid(), &server);
  return {SecondsOf(CLOCK_PROCESS_CPUTIME_ID), SecondsOf(server)};
}

double Deployment::ServerMemoryMib() const {
  std::ifstream file(absl::StrCat("/proc/", servers_.front()->pid(), "/statm"));
  int64_t all_pages = 0;
  int64_t pages = 0;
  file >> all_pages >> pages;
  return static_cast<double>(pages * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

Deployment& TheDeployment() {
  static Deployment deployment;
  return deployment;
}

}  // namespace rowhouse::bench
