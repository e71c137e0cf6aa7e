#ifndef ROWHOUSE_TESTS_SERVER_BACKENDS_BACKEND_CLUSTER_H_
#define ROWHOUSE_TESTS_SERVER_BACKENDS_BACKEND_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "rowhouse/cluster.h"
#include "server/server.h"

namespace rowhouse::testing {

/// Servers on one backend, on free ports of the loopback, and a client of them.
class BackendCluster {
 public:
  /// Errors: those of `Server::Start` and `Cluster::Connect`.
  static absl::StatusOr<BackendCluster> Start(
      const std::string& backend, int32_t server_count,
      int64_t memory_limit_bytes, const std::string& checkpoints = "");

  client::Cluster& operator*() const { return *cluster_; }
  client::Cluster* operator->() const { return cluster_.get(); }

 private:
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::unique_ptr<client::Cluster> cluster_;
};

/// A test on the backend of its parameter, `cpu` or `cuda`, beside the CPU. It
/// is skipped without a GPU, and fails where ROWHOUSE_REQUIRE_GPU is set.
class OnBackendTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;

  /// Servers on a backend that is there; `checkpoints` is a directory or empty.
  static BackendCluster Servers(const std::string& backend,
                                int32_t server_count,
                                int64_t memory_limit_bytes = int64_t{1} << 28,
                                const std::string& checkpoints = "");
};

inline std::string NameOfBackend(
    const ::testing::TestParamInfo<const char*>& backend) {
  return backend.param;
}

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_BACKENDS_BACKEND_CLUSTER_H_
