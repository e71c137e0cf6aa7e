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

/// What a head call and its event leave.
struct DeviceHeadOutcome {
  std::vector<float> losses;
  std::vector<uint16_t> hidden_gradient;
  client::TableDigest digest;

  friend bool operator==(const DeviceHeadOutcome&,
                         const DeviceHeadOutcome&) = default;
};

/// Makes dense table `t`, of 300 rows of 96 bf16, takes a loss of it forward
/// and backward, applies the event, and deletes the table. Hidden states,
/// targets and hidden gradient are in memory of `device`, or of the host where
/// that is null.
DeviceHeadOutcome RunHeadIn(client::Cluster& cluster, kernels::Backend* device,
                            int32_t shard_count, uint64_t seed);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_ONE_SIDED_DEVICE_TRAINING_H_
