#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/internal/record_stream.h"
#include "client/push_log/file_fault.h"
#include "client/push_log/log_scan.h"
#include "client/push_log/part_reader.h"
#include "client/push_log/push_log.h"
#include "client/push_log/replay_target.h"
#include "client/push_log/replay_trainers.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

absl::Status ApplyEvent(const EventPlace& event, LogReader& reader,
                        ReplayTrainers& trainers, ReplayReport& report) {
  ROWHOUSE_RETURN_IF_ERROR(trainers.SetCount(
      static_cast<int32_t>(event.event.contributions.size())));
  for (const PartPlace& place : event.parts) {
    ROWHOUSE_ASSIGN_OR_RETURN(const internal::RecordedPart part,
                              ReadPart(place, reader));
    ROWHOUSE_ASSIGN_OR_RETURN(const bool same,
                              trainers.Push(event.event.event, part));
    if (!same) ++report.differing_head_part_count;
  }
  return trainers.Apply(event.event.event, event.event.commit.update);
}

bool SameSlices(const TableInfo& table, const LogInfo& log) {
  if (std::ssize(table.shards) + 1 != std::ssize(log.shard_bounds)) {
    return false;
  }
  for (size_t shard = 0; shard < table.shards.size(); ++shard) {
    if (table.shards[shard].end_row != log.shard_bounds[shard + 1]) {
      return false;
    }
  }
  return true;
}

// What a table's servers run, each once; empty where that is not known.
std::string DevicesOf(const Cluster& cluster, const TableInfo& table) {
  std::set<std::string> devices;
  for (const ServerInfo& server : cluster.servers()) {
    if (server.server_index < std::ssize(table.shards)) {
      devices.insert(server.device.description);
    }
  }
  return absl::StrJoin(devices, " and ");
}

// What is known before the first event.
std::string WarningOf(const Cluster& cluster, const LogInfo& log,
                      const TableInfo& table) {
  std::string warning;
  if (!log.complete) {
    absl::StrAppend(&warning, "the log is cut off after event ", log.last_event,
                    " (", log.whole_bytes, " of ", log.size_bytes,
                    " bytes are whole events); it is applied up to there. ");
  }
  if (!log.fault.empty()) {
    absl::StrAppend(&warning, "the recording ended early, after event ",
                    log.last_event, ": ", log.fault, ". ");
  }
  if (log.counts.head_part_count == 0) return warning;
  absl::StrAppend(&warning,
                  "the log has parts of head calls: the digest is equal only "
                  "on the same backend, device and library versions with the "
                  "same slices. Recorded on: ",
                  absl::StrJoin(std::set<std::string>(log.arithmetic.begin(),
                                                      log.arithmetic.end()),
                                " and "),
                  ". ");
  const std::string here = DevicesOf(cluster, table);
  if (!here.empty()) absl::StrAppend(&warning, "Here: ", here, ". ");
  if (!SameSlices(table, log)) {
    absl::StrAppend(&warning, "The slices differ here: ", table.shards.size(),
                    " shards, recorded with ", log.spec.shard_count, ". ");
  }
  return warning;
}

}  // namespace

absl::StatusOr<ReplayReport> Replay(Cluster& cluster, std::string_view table,
                                    const std::string& path,
                                    const ReplayOptions& options) {
  // The whole log first: nothing is applied of one that is damaged.
  ROWHOUSE_ASSIGN_OR_RETURN(const LogInfo log, Inspect(path));
  ROWHOUSE_ASSIGN_OR_RETURN(const ReplayTarget target,
                            PrepareTarget(cluster, table, log, options));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<LogScan> scan,
                            LogScan::Open(path));
  ReplayReport report;
  report.created = target.created;
  report.start_event = log.start_event;
  report.last_event = log.start_event;
  report.complete = log.complete;
  report.fault = log.fault;
  report.has_head_parts = log.counts.head_part_count > 0;
  report.warning = WarningOf(cluster, log, target.table);
  if (options.warn != nullptr && !report.warning.empty()) {
    options.warn(report.warning);
  }
  ReplayTrainers trainers(cluster, std::string(table), options.timeout);
  // A log that is still being written may have grown meanwhile.
  while (report.last_event < log.last_event && !options.stop.stop_requested()) {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<EventPlace> event,
                              scan->NextEvent());
    if (!event.has_value()) {
      return FileFault(absl::StatusCode::kDataLoss, kDamaged, path,
                       absl::StrCat("event ", report.last_event + 1,
                                    " has gone since the log was read"));
    }
    ROWHOUSE_RETURN_IF_ERROR(
        ApplyEvent(*event, scan->reader(), trainers, report));
    report.last_event = event->event.event;
    Count(*event, report.counts);
    if (options.progress != nullptr) {
      options.progress({report.last_event, report.counts.event_count,
                        log.counts.event_count, report.counts});
    }
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      report.digest,
      cluster.Digest(table, report.last_event, {.timeout = options.timeout}));
  for (const auto& recorded : {log.start_digest, log.end_digest}) {
    if (recorded.has_value() && recorded->event == report.last_event) {
      report.recorded_digest = recorded;
    }
  }
  if (report.differing_head_part_count > 0) {
    absl::StrAppend(&report.warning, report.differing_head_part_count,
                    " head calls gave other logits than recorded. ");
  }
  return report;
}

}  // namespace rowhouse::client::push_log
