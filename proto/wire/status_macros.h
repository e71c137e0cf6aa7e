#ifndef ROWHOUSE_PROTO_WIRE_STATUS_MACROS_H_
#define ROWHOUSE_PROTO_WIRE_STATUS_MACROS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define ROWHOUSE_CONCAT_INNER_(a, b) a##b
#define ROWHOUSE_CONCAT_(a, b) ROWHOUSE_CONCAT_INNER_(a, b)

/// Returns from the function when `expression` is not OK.
#define ROWHOUSE_RETURN_IF_ERROR(expression)             \
  do {                                                   \
    absl::Status rowhouse_status_ = (expression);        \
    if (!rowhouse_status_.ok()) return rowhouse_status_; \
  } while (false)

/// Assigns the value of a StatusOr, or returns its status.
#define ROWHOUSE_ASSIGN_OR_RETURN(target, expression)                      \
  ROWHOUSE_ASSIGN_OR_RETURN_(ROWHOUSE_CONCAT_(rowhouse_result_, __LINE__), \
                             target, expression)
// NOLINTBEGIN(bugprone-macro-parentheses): names and declarations take none.
#define ROWHOUSE_ASSIGN_OR_RETURN_(result, target, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return std::move(result).status();         \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // ROWHOUSE_PROTO_WIRE_STATUS_MACROS_H_
