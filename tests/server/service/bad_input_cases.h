#ifndef ROWHOUSE_TESTS_SERVER_SERVICE_BAD_INPUT_CASES_H_
#define ROWHOUSE_TESTS_SERVER_SERVICE_BAD_INPUT_CASES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace rowhouse::testing {

/// One call that must be refused, and how. All are made on server 0 of 2, which
/// has the shard [0, 5) of `tables/t` ([10, 2] fp32, 2 trainers, 4 rows a
/// contribution, 4 parts, 4 rows a pull), and `tables/one` (the same with 1
/// shard, 1 trainer). Rank 0 of `tables/t` has session 3 open, rank 1
/// session 1.
struct BadInput {
  std::string name;
  std::string method;
  /// The messages, as textprotos. `CreateTable`: on top of a good request.
  /// Bytes `@n` stand for n zero bytes.
  std::vector<std::string> messages;
  absl::StatusCode code;
  std::string reason;
  std::string message;  ///< Part of it.
};

std::vector<BadInput> BadTableInputs();
std::vector<BadInput> BadPullInputs();
std::vector<BadInput> BadPushInputs();
std::vector<BadInput> BadImportInputs();
std::vector<BadInput> BadEventInputs();

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SERVICE_BAD_INPUT_CASES_H_
