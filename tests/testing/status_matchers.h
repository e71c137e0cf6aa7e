#ifndef ROWHOUSE_TESTS_TESTING_STATUS_MATCHERS_H_
#define ROWHOUSE_TESTS_TESTING_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace rowhouse::testing {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

/// Matches a status or result that is OK.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.ok();
}

/// Matches a status or result of this code whose message contains `substring`.
MATCHER_P2(StatusIs, code, substring,
           std::string(negation ? "is not " : "is ") +
               absl::StatusCodeToString(code) + " with \"" +
               std::string(substring) + "\" in its message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         std::string(status.message()).find(std::string(substring)) !=
             std::string::npos;
}

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_TESTING_STATUS_MATCHERS_H_
