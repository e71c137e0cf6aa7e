#ifndef ROWHOUSE_CLIENT_CLI_BENCH_TABLE_H_
#define ROWHOUSE_CLIENT_CLI_BENCH_TABLE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "rowhouse/cluster.h"

namespace rowhouse::cli {

/// A table that a load makes for itself, of the name in `Context::table`.
struct OwnTable {
  client::TableSpec spec;
  bool replace = false;  ///< A table of this name may go.
};

/// Makes the table, runs `measure`, whose value is the exit code, and deletes
/// the table whatever came of it. An interrupt calls `cancel`, on another
/// thread: it is to end `measure` with kCancelled.
///
/// Errors:
///   kAlreadyExists  a table of this name is there, and may not go.
///   Those of `Cluster::Survey` and `Cluster::DeleteTable`.
/// All other faults are printed.
absl::StatusOr<int> OnOwnTable(
    const Context& context, client::Cluster& cluster, const OwnTable& table,
    const std::function<void()>& cancel,
    const std::function<absl::StatusOr<int>()>& measure);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_BENCH_TABLE_H_
