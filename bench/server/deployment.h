#ifndef ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_
#define ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_

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

/// One server process on a free port of 127.0.0.1, on the backend of this run,
/// and a client of it in this process. What fails ends this process.
///
/// Thread-compatible.
class Deployment {
 public:
  /// `more` is added to the server's configuration.
  explicit Deployment(std::string_view more = "");

  const std::string& address() const { return address_; }
  client::Cluster& cluster() { return *cluster_; }

  /// Makes a table and returns a trainer of each rank.
  std::vector<std::unique_ptr<client::Trainer>> MakeTable(
      const std::string& name, const client::TableSpec& spec);

  CpuSeconds Cpu() const;

 private:
  std::unique_ptr<ngram_lm::Process> server_;
  std::string address_;
  std::unique_ptr<client::Cluster> cluster_;
};

/// The process's own; the server ends with it.
Deployment& TheDeployment();

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SERVER_DEPLOYMENT_H_
