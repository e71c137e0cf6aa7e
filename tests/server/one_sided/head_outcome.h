#ifndef ROWHOUSE_TESTS_SERVER_ONE_SIDED_HEAD_OUTCOME_H_
#define ROWHOUSE_TESTS_SERVER_ONE_SIDED_HEAD_OUTCOME_H_

#include <cstddef>
#include <vector>

#include "rowhouse/cluster.h"
#include "rowhouse/types.h"

namespace rowhouse::testing {

/// What head calls and their event leave.
struct HeadOutcome {
  std::vector<float> losses;
  std::vector<std::byte> hidden_gradient;  ///< Of the last call.
  client::TableDigest digest;
};

/// Makes the table `t` on two servers, two calls of the head and an event.
HeadOutcome RunHead(client::Cluster& cluster);

/// Expects the same bits.
void ExpectSame(const HeadOutcome& got, const HeadOutcome& want);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_ONE_SIDED_HEAD_OUTCOME_H_
