#ifndef ROWHOUSE_TESTS_SERVER_BACKENDS_TRAINING_H_
#define ROWHOUSE_TESTS_SERVER_BACKENDS_TRAINING_H_

#include <cstdint>
#include <vector>

#include "rowhouse/cluster.h"
#include "rowhouse/types.h"

namespace rowhouse::testing {

/// Tables `t` of two trainers: 2,000 rows of 96 bf16, and 300 with an fp32
/// master and bias.
client::TableSpec SparseSpec(int32_t shard_count);
client::TableSpec DenseSpec(int32_t shard_count);

/// What training leaves that a client can see.
struct Outcome {
  std::vector<client::TableDigest> digests;  ///< From event 0 on.
  std::vector<std::vector<std::byte>> rows;  ///< All, after each event.
  std::vector<client::GradientStatistics> statistics;  ///< Of each event.
};

/// Makes the table and trains it: each trainer pushes two parts an event, with
/// rows many times and rows that it pulled; one event is skipped. The same seed
/// gives the same training. Any failure fails the test.
Outcome Train(client::Cluster& cluster, const client::TableSpec& spec,
              int64_t event_count, uint64_t seed);

/// Expects the same bits.
void ExpectSame(const Outcome& found, const Outcome& wanted);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_BACKENDS_TRAINING_H_
