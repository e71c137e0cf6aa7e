#ifndef ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_
#define ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/examples/ngram_lm/process.h"
#include "rowhouse/cluster.h"
#include "rowhouse/trainer.h"

namespace rowhouse::bench {

/// Seconds of CPU time, user and system, since the process began.
struct CpuSeconds {
  double client = 0;  ///< This process.
  double server = 0;
};

/// How a client reaches the server.
enum class Wire : uint8_t { kTcp = 0, kUnixSocket = 1 };

/// One server process on a free port of 127.0.0.1 and on a socket, on the
/// backend of this run, and clients of both in this process. What fails ends
/// this process.
///
/// Thread-compatible.
class Deployment {
 public:
  /// `more` is added to the server's configuration.
  explicit Deployment(std::string_view more = "");
  ~Deployment();

  client::Cluster& cluster(Wire wire = Wire::kTcp) {
    return *clusters_[static_cast<size_t>(wire)];
  }
  const std::string& address(Wire wire = Wire::kTcp) const {
    return addresses_[static_cast<size_t>(wire)];
  }

  /// Makes a table and returns a trainer of each rank.
  std::vector<std::unique_ptr<client::Trainer>> MakeTable(
      const std::string& name, const client::TableSpec& spec,
      Wire wire = Wire::kTcp);

  CpuSeconds Cpu() const;

  /// What the server's process has in memory now; tables of other cases too.
  double ServerMemoryMib() const;

 private:
  class TemporaryFolder;

  std::unique_ptr<TemporaryFolder> folder_;  // With the socket.
  std::unique_ptr<ngram_lm::Process> server_;
  std::vector<std::string> addresses_;  // By wire.
  std::vector<std::unique_ptr<client::Cluster>> clusters_;
};

/// The process's own; the server ends with it.
Deployment& TheDeployment();

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_
