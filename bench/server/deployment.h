#ifndef ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_
#define ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/run.h"
#include "client/examples/ngram_lm/process.h"
#include "rowhouse/cluster.h"
#include "rowhouse/trainer.h"

namespace rowhouse::bench {

/// Seconds of CPU time, user and system, since the process began.
struct CpuSeconds {
  double client = 0;  ///< This process.
  double server = 0;  ///< The first one.
};

/// How a client reaches the server.
enum class Wire : uint8_t { kTcp = 0, kUnixSocket = 1 };

/// Server processes on free ports of 127.0.0.1 and on sockets, on the backend
/// of this run, and clients of both in this process; one server, unless more
/// devices are named. What fails ends this process.
///
/// Thread-compatible.
class Deployment {
 public:
  /// `more` is added to the server's configuration.
  explicit Deployment(std::string_view more = "")
      : Deployment(more, {ServerDevice()}) {}

  /// One server a device.
  Deployment(std::string_view more, const std::vector<int>& devices);
  ~Deployment();

  client::Cluster& cluster(Wire wire = Wire::kTcp) {
    return *clusters_[static_cast<size_t>(wire)];
  }
  /// Of the first server.
  const std::string& address(Wire wire = Wire::kTcp) const {
    return addresses_[static_cast<size_t>(wire)].front();
  }

  /// Makes a table and returns a trainer of each rank.
  std::vector<std::unique_ptr<client::Trainer>> MakeTable(
      const std::string& name, const client::TableSpec& spec,
      Wire wire = Wire::kTcp);

  CpuSeconds Cpu() const;

  /// What the first server's process has in memory now; tables of other cases
  /// too.
  double ServerMemoryMib() const;

 private:
  class TemporaryFolder;

  std::unique_ptr<TemporaryFolder> folder_;  // With the sockets.
  std::vector<std::unique_ptr<ngram_lm::Process>> servers_;
  std::vector<std::vector<std::string>> addresses_;  // By wire, and server.
  std::vector<std::unique_ptr<client::Cluster>> clusters_;
};

/// The process's own; the server ends with it.
Deployment& TheDeployment();

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_
