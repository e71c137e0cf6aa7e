#include "client/push_log/replay_target.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/internal/cluster_core.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

// Events ahead of the last applied one whose trainer counts are fixed.
constexpr int64_t kFixedEvents = 2;

int32_t TrainerCountAt(const std::vector<TrainerCountChange>& changes,
                       int64_t event) {
  int32_t count = 0;
  for (const TrainerCountChange& change : changes) {
    if (change.from_event <= event) count = change.trainer_count;
  }
  return count;
}

absl::Status NotReady(std::string_view table, const std::string& what,
                      std::string_view advice) {
  return absl::FailedPreconditionError(
      absl::StrCat(std::string(table), ": ", what, "; ", std::string(advice)));
}

// What decides a table's bits, given equal parts and scalars.
absl::Status CheckSpec(std::string_view table, const TableSpec& found,
                       const TableSpec& wanted) {
  const auto same_dense = [&] {
    if (found.dense.has_value() != wanted.dense.has_value()) return false;
    return !found.dense.has_value() ||
           (found.dense->main_grad_dtype == wanted.dense->main_grad_dtype &&
            found.dense->has_master == wanted.dense->has_master &&
            found.dense->has_bias == wanted.dense->has_bias);
  };
  const std::pair<const char*, bool> fields[] = {
      {"row_count", found.row_count == wanted.row_count},
      {"dim", found.dim == wanted.dim},
      {"row_dtype", found.row_dtype == wanted.row_dtype},
      {"gradient_dtype", found.gradient_dtype == wanted.gradient_dtype},
      {"gradient_reduction",
       found.gradient_reduction == wanted.gradient_reduction},
      {"non_finite_policy",
       found.non_finite_policy == wanted.non_finite_policy},
      {"kind of table", same_dense()}};
  for (const auto& [field, same] : fields) {
    if (same) continue;
    return NotReady(table,
                    absl::StrCat("its ", field, " is not the recorded table's"),
                    "name a table that is not there, and the replay makes one "
                    "as the log says");
  }
  return absl::OkStatus();
}

absl::Status CheckStart(Cluster& cluster, const TableInfo& table,
                        const LogInfo& log, const ReplayOptions& options) {
  for (const TableShard& shard : table.shards) {
    if (shard.event == log.start_event) continue;
    return NotReady(
        table.name,
        absl::StrCat("it is at event ", shard.event,
                     ", and the log begins after event ", log.start_event),
        log.start_event == 0
            ? "reset it, or name a table that is not there"
            : "first replay the log that ends with that event");
  }
  if (!log.start_digest.has_value()) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(const TableDigest digest,
                            cluster.Digest(table.name, log.start_event,
                                           {.timeout = options.timeout}));
  if (digest == *log.start_digest) return absl::OkStatus();
  return NotReady(
      table.name,
      absl::StrFormat("its digest is %016x, and at the log's start, event %d, "
                      "it was %016x",
                      digest.digest, log.start_event, log.start_digest->digest),
      log.start_event == 0
          ? "reset it, and import the rows that the recorded table had been "
            "given before"
          : "it must have come to that event by the same updates");
}

absl::StatusOr<TableInfo> CreateTarget(Cluster& cluster, std::string_view table,
                                       const LogInfo& log,
                                       const ReplayOptions& options) {
  if (log.start_event != 0) {
    return NotReady(table, "there is no such table",
                    absl::StrCat("the log begins after event ", log.start_event,
                                 ": first replay the one that ends with it"));
  }
  TableSpec spec = log.spec;
  if (options.shard_count.has_value() &&
      *options.shard_count != spec.shard_count) {
    spec.shard_count = *options.shard_count;
    spec.shard_bounds.clear();
    // It is a limit of each shard, and now one may have more of the rows.
    spec.max_contribution_row_count =
        std::max(spec.max_contribution_row_count, log.most_row_count);
  }
  const int32_t server_count = cluster.core()->server_count();
  if (spec.shard_count > server_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(table), ": a table of ", spec.shard_count,
        " shards does not fit on ", server_count,
        server_count == 1 ? " server" : " servers", "; give --shards=",
        server_count, ", on which the log can be replayed too"));
  }
  return cluster.CreateTable(table, spec, {.timeout = options.timeout});
}

// Trainer counts from the first event on that can still be changed.
absl::Status ScheduleTrainers(Cluster& cluster, const TableInfo& table,
                              const LogInfo& log,
                              const ReplayOptions& options) {
  const CallOptions call{.timeout = options.timeout};
  const int64_t fixed = log.start_event + kFixedEvents;
  for (int64_t event = log.start_event + 1;
       event <= std::min(fixed, log.last_event); ++event) {
    const int32_t found = TrainerCountAt(table.trainer_counts, event);
    const int32_t wanted = TrainerCountAt(log.trainer_counts, event);
    if (found == wanted) continue;
    return NotReady(table.name,
                    absl::StrCat("event ", event, " has ", found,
                                 " trainers, and in the log ", wanted),
                    "which cannot be changed any more: use a table that came "
                    "to this event as the recorded one did");
  }
  // The first takes the place of all changes scheduled after it.
  ROWHOUSE_RETURN_IF_ERROR(
      cluster
          .UpdateTrainerCount(table.name,
                              TrainerCountAt(log.trainer_counts, fixed + 1),
                              fixed + 1, call)
          .status());
  for (const TrainerCountChange& change : log.trainer_counts) {
    if (change.from_event <= fixed + 1) continue;
    ROWHOUSE_RETURN_IF_ERROR(cluster
                                 .UpdateTrainerCount(table.name,
                                                     change.trainer_count,
                                                     change.from_event, call)
                                 .status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReplayTarget> PrepareTarget(Cluster& cluster,
                                           std::string_view table,
                                           const LogInfo& log,
                                           const ReplayOptions& options) {
  const CallOptions call{.timeout = options.timeout};
  ReplayTarget target;
  absl::StatusOr<TableInfo> found = cluster.GetTable(table, call);
  target.created = absl::IsNotFound(found.status());
  if (target.created) found = CreateTarget(cluster, table, log, options);
  if (!found.ok()) return found.status();
  ROWHOUSE_RETURN_IF_ERROR(CheckSpec(table, found->spec, log.spec));
  ROWHOUSE_RETURN_IF_ERROR(CheckStart(cluster, *found, log, options));
  ROWHOUSE_RETURN_IF_ERROR(ScheduleTrainers(cluster, *found, log, options));
  target.table = *std::move(found);
  return target;
}

}  // namespace rowhouse::client::push_log
