#include "client/cli/bench_table.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/table_view.h"
#include "client/cli/terminal.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

// What a server fills with initial rows in a second, at the least.
constexpr double kLeastFillRate = 50e6;

// For servers to answer, after an interrupt.
constexpr absl::Duration kInterruptedSurvey = absl::Seconds(1);

absl::Status CheckFree(client::Cluster& cluster, const std::string& table,
                       bool replace, absl::Duration timeout) {
  const std::vector<client::ServerState> servers =
      cluster.Survey({.timeout = timeout, .table = table});
  for (const client::ServerState& server : servers) {
    ROWHOUSE_RETURN_IF_ERROR(server.status);
  }
  if (TablesOf(servers).empty()) return absl::OkStatus();
  if (!replace) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a table ", table,
        " is there, and bench deletes its table at the end; give another "
        "--table, or --replace to lose that one"));
  }
  return cluster.DeleteTable(table, {.timeout = timeout});
}

// Beyond `timeout` there is time for the rows to be made.
absl::Status Create(client::Cluster& cluster, const std::string& table,
                    const client::TableSpec& spec, absl::Duration timeout) {
  const double row_bytes = static_cast<double>(spec.dim) *
                           static_cast<double>(SizeOf(spec.row_dtype));
  const absl::Duration filling = absl::Seconds(
      static_cast<double>(spec.row_count) * row_bytes / kLeastFillRate);
  return cluster.CreateTable(table, spec, {.timeout = timeout + filling})
      .status();
}

// Deletes the table, over connections of its own: an interrupt has ended the
// load's. Not while a server is away, for which the call would wait. Returns
// whether it was there: servers may have refused to make it.
absl::StatusOr<bool> Delete(const ConnectionFlags& connection,
                            const std::string& table) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            ConnectLoosely(connection));
  const absl::Duration timeout = connection.timeout();
  const std::vector<client::ServerState> servers = cluster->Survey(
      {.timeout =
           Interrupted() ? std::min(timeout, kInterruptedSurvey) : timeout,
       .tables = false});
  for (const client::ServerState& server : servers) {
    if (!server.info.has_value()) return AwayError(servers);
  }
  const absl::Status deleted =
      cluster->DeleteTable(table, {.timeout = timeout});
  if (absl::IsNotFound(deleted)) return false;
  if (!deleted.ok()) return deleted;
  return true;
}

// Prints what ended the load, if anything did; returns the exit code.
int CodeOf(const Context& context, const absl::StatusOr<int>& measured) {
  if (measured.ok()) return *measured;
  // After an interrupt trainers may say first what they cannot do any more.
  if (!Interrupted() && !absl::IsCancelled(measured.status())) {
    return PrintFault(measured.status(), context);
  }
  std::cerr << "rowhouse: interrupted; another interrupt leaves table "
            << context.table << " behind\n";
  return kInterrupted;
}

// The exit code is that of the first thing that failed.
int CleanUp(const Context& context, int code) {
  ReleaseInterrupts();
  const std::string& table = context.table;
  const absl::StatusOr<bool> deleted = Delete(context.connection, table);
  if (!deleted.ok()) {
    std::cerr << "rowhouse: table " << table
              << " is left behind: " << deleted.status().message()
              << "\n  `rowhouse delete " << table
              << "` deletes it, once all servers answer\n";
    return code == kOk ? ExitCodeOf(deleted.status()) : code;
  }
  if (code != kOk && *deleted) {
    std::cerr << "rowhouse: table " << table << " is deleted\n";
  }
  return code;
}

}  // namespace

absl::StatusOr<int> OnOwnTable(
    const Context& context, client::Cluster& cluster, const OwnTable& table,
    const std::function<void()>& cancel,
    const std::function<absl::StatusOr<int>()>& measure) {
  const absl::Duration timeout = context.connection.timeout();
  ROWHOUSE_RETURN_IF_ERROR(
      CheckFree(cluster, context.table, table.replace, timeout));
  CatchInterrupts();
  const InterruptWatch watch(cancel);
  const absl::Status created =
      Create(cluster, context.table, table.spec, timeout);
  // Somebody else's, made since.
  if (absl::IsAlreadyExists(created)) return created;
  return CleanUp(
      context,
      CodeOf(context, created.ok() ? measure() : absl::StatusOr<int>(created)));
}

}  // namespace rowhouse::cli
