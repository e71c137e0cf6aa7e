#ifndef ROWHOUSE_TESTS_SERVER_ONE_SIDED_DEVICE_TRAINING_H_
#define ROWHOUSE_TESTS_SERVER_ONE_SIDED_DEVICE_TRAINING_H_

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "rowhouse/cluster.h"

namespace rowhouse::testing {

/// What training leaves that a client can see.
struct DeviceOutcome {
  std::vector<std::vector<float>> rows;  ///< Of each pull.
  client::TableDigest digest;

  friend bool operator==(const DeviceOutcome&, const DeviceOutcome&) = default;
};

/// Makes table `t`, 4,000 rows of 96 fp32, trains it for some events, and
/// deletes it. Rows and gradients are in memory of `device`, or of the host
/// where that is null; ids in the host's, the device's and prepared in turn.
/// The same seed gives the same training. Any failure fails the test.
DeviceOutcome TrainIn(client::Cluster& cluster, kernels::Backend* device,
                      int32_t shard_count, uint64_t seed);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_ONE_SIDED_DEVICE_TRAINING_H_
