#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/internal/cancellation.h"
#include "client/internal/cluster_core.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/record_convert.h"
#include "client/internal/survey.h"
#include "client/internal/table_admin.h"
#include "client/push_log/file_fault.h"
#include "client/push_log/log_writer.h"
#include "client/push_log/push_log.h"
#include "client/push_log/shard_streams.h"
#include "proto/wire/error.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

using internal::Cancellation;
using internal::ClusterCore;
using internal::RecordedEvent;
using internal::RecordedPart;
using internal::ShardDigest;

absl::Status ShardsDisagree(int64_t event, int32_t shard) {
  return absl::InternalError(absl::StrCat(
      "shard ", shard, " has another event ", event, " than shard 0"));
}

bool SameEvent(const RecordedEvent& a, const RecordedEvent& b) {
  return a.event == b.event && a.commit == b.commit &&
         a.contributions == b.contributions;
}

void Fill(const TableDigest& digest, log::v1::LogDigest& proto) {
  proto.set_event(digest.event);
  proto.set_digest(static_cast<int64_t>(digest.digest));
}

// Who has stopped a recording does not wait for servers that are silent.
constexpr absl::Duration kAnswerTime = absl::Seconds(1);

bool AllAnswer(ClusterCore& cluster, const TableInfo& table) {
  const std::vector<ServerState> servers = internal::SurveyServers(
      cluster, {.timeout = kAnswerTime, .tables = false});
  return std::all_of(
      servers.begin(), servers.begin() + std::ssize(table.shards),
      [](const ServerState& server) { return server.info.has_value(); });
}

// Counts a part with its first rows or tokens. All shards have the same parts,
// and the same tokens of them.
void Count(const RecordedPart& piece, int32_t shard, LogCounts& counts) {
  if (piece.first_item != 0 || !piece.class_weights.empty()) return;
  if (!piece.head) counts.row_count += piece.item_count;
  if (shard != 0) return;
  ++counts.part_count;
  if (!piece.head) return;
  ++counts.head_part_count;
  counts.token_count += piece.item_count;
}

absl::Status WithWholeEvents(const absl::Status& fault,
                             const RecordReport& report) {
  return wire::WithDetails(
      absl::Status(
          fault.code(),
          absl::StrCat(fault.message(), "; ",
                       report.counts.event_count == 0
                           ? "it has no whole event"
                           : absl::StrCat("the last event that is whole in it "
                                          "is ",
                                          report.last_event))),
      wire::DetailsOf(fault).value_or(wire::ErrorDetails()));
}

class Recorder {
 public:
  Recorder(ClusterCore& cluster, TableInfo table, const RecordOptions& options,
           Cancellation& stop)
      : cluster_(cluster),
        table_(std::move(table)),
        options_(options),
        stop_(stop),
        streams_(cluster, table_, options, stop) {}

  absl::StatusOr<RecordReport> Run(const std::string& path) {
    ROWHOUSE_RETURN_IF_ERROR(streams_.Open());
    ROWHOUSE_ASSIGN_OR_RETURN(writer_,
                              LogWriter::Create(path, options_.overwrite));
    const absl::Status written = Write();
    if (IsFileFault(written)) return WithWholeEvents(written, report_);
    if (!written.ok()) return written;
    return report_;
  }

 private:
  absl::Status Write();
  absl::Status RecordEvents();
  absl::Status RecordEvent();
  absl::Status RecordShard(int32_t shard, std::optional<RecordedEvent>& event,
                           LogCounts& counts);
  absl::Status FinishEvent(const RecordedEvent& event, const LogCounts& counts);
  absl::Status WriteHeader();
  absl::Status WriteFooter();
  absl::StatusOr<TableDigest> EndDigest();
  void Progress() const;

  ClusterCore& cluster_;
  const TableInfo table_;
  const RecordOptions& options_;
  Cancellation& stop_;
  ShardStreams streams_;
  std::unique_ptr<LogWriter> writer_;
  log::v1::LogRecord record_;
  RecordReport report_;
  std::vector<ShardDigest> digests_;  // With the last event, by shard.
  bool ended_ = false;                // After `last_event`.
};

absl::Status Recorder::Write() {
  ROWHOUSE_RETURN_IF_ERROR(WriteHeader());
  Progress();
  ROWHOUSE_RETURN_IF_ERROR(RecordEvents());
  return WriteFooter();
}

absl::Status Recorder::RecordEvents() {
  while (!ended_) {
    const absl::Status recorded = RecordEvent();
    if (recorded.ok()) continue;
    // A stream's fault ends the log in order.
    if (recorded != streams_.fault()) return recorded;
    const bool stopped =
        options_.stop.stop_requested() && absl::IsCancelled(recorded);
    if (!stopped) report_.fault = recorded;
    return writer_->Rewind();
  }
  return absl::OkStatus();
}

absl::Status Recorder::RecordEvent() {
  std::optional<RecordedEvent> event;  // As shard 0 has it.
  LogCounts counts = report_.counts;
  for (int32_t shard = 0; shard < streams_.shard_count() && !ended_; ++shard) {
    ROWHOUSE_RETURN_IF_ERROR(RecordShard(shard, event, counts));
  }
  return ended_ ? absl::OkStatus() : FinishEvent(*event, counts);
}

absl::Status Recorder::RecordShard(int32_t shard,
                                   std::optional<RecordedEvent>& event,
                                   LogCounts& counts) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordedEvent> next,
                            streams_.ReadEvent(shard));
  if (shard == 0) {
    ended_ = !next.has_value();
    if (ended_) return absl::OkStatus();
    event = std::move(next);
    next = event;
    internal::Fill(*event, *record_.mutable_event());
    ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  }
  if (!next.has_value() || !SameEvent(*event, *next)) {
    return ShardsDisagree(event->event, shard);
  }
  if (next->digest.has_value()) digests_.push_back(*next->digest);
  for (int64_t left = PartCount(*event); left > 0;) {
    ROWHOUSE_ASSIGN_OR_RETURN(RecordedPart piece, streams_.ReadPart(shard));
    if (EndsPart(piece)) --left;
    Count(piece, shard, counts);
    log::v1::LogPart& proto = *record_.mutable_part();
    proto.set_shard(shard);
    internal::TakeInto(piece, *proto.mutable_part());
    ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  }
  return absl::OkStatus();
}

absl::Status Recorder::FinishEvent(const RecordedEvent& event,
                                   const LogCounts& counts) {
  record_.mutable_event_end()->set_event(event.event);
  ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  ROWHOUSE_RETURN_IF_ERROR(writer_->MarkWhole());
  report_.last_event = event.event;
  report_.counts = counts;
  ++report_.counts.event_count;
  if (std::holds_alternative<SkipEvent>(event.commit.update)) {
    ++report_.counts.skipped_event_count;
  }
  if (!digests_.empty()) {
    ROWHOUSE_ASSIGN_OR_RETURN(report_.end_digest,
                              internal::MergeDigests(digests_));
  }
  ended_ = options_.last_event == event.event;
  Progress();
  return absl::OkStatus();
}

absl::Status Recorder::WriteHeader() {
  report_.start_event = streams_.start_event();
  report_.last_event = streams_.start_event();
  report_.start_digest = streams_.start_digest();
  log::v1::LogHeader& header = *record_.mutable_header();
  header.set_table(table_.name);
  *header.mutable_spec() = internal::ToProto(table_.spec);
  for (const TableShard& shard : table_.shards) {
    header.add_shard_bounds(shard.first_row);
  }
  header.add_shard_bounds(table_.shards.back().end_row);
  header.set_start_event(report_.start_event);
  if (report_.start_digest.has_value()) {
    Fill(*report_.start_digest, *header.mutable_start_digest());
  }
  internal::Fill(streams_.trainer_counts(), *header.mutable_trainer_counts());
  for (const internal::RecordingStart& start : streams_.starts()) {
    header.add_arithmetic(start.arithmetic);
  }
  ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  return writer_->MarkWhole();
}

absl::Status Recorder::WriteFooter() {
  streams_.Close();
  // After a fault the table may have been rewritten; where training goes on
  // there is no digest, for the event is past.
  if (options_.digest && report_.fault.ok() &&
      !report_.end_digest.has_value()) {
    const absl::StatusOr<TableDigest> digest = EndDigest();
    if (digest.ok()) report_.end_digest = *digest;
    report_.digest_fault = digest.status();
  }
  log::v1::LogFooter& footer = *record_.mutable_footer();
  footer.set_last_event(report_.last_event);
  if (report_.end_digest.has_value()) {
    Fill(*report_.end_digest, *footer.mutable_digest());
  }
  if (!report_.fault.ok()) {
    footer.set_fault(
        absl::StrCat(absl::StatusCodeToString(report_.fault.code()), ": ",
                     report_.fault.message()));
  }
  ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  report_.size_bytes = writer_->size_bytes();
  return writer_->Close();
}

absl::StatusOr<TableDigest> Recorder::EndDigest() {
  const bool stopped = stop_.cancelled();
  if (stopped && !AllAnswer(cluster_, table_)) {
    return absl::UnavailableError("a server is silent");
  }
  return internal::ReadDigest(cluster_, table_, report_.last_event,
                              stopped
                                  ? cluster_.Context(options_.timeout)
                                  : cluster_.Context(options_.timeout, stop_));
}

void Recorder::Progress() const {
  if (options_.progress == nullptr) return;
  options_.progress(
      {report_.last_event, report_.counts, writer_->size_bytes()});
}

}  // namespace

absl::StatusOr<RecordReport> Record(Cluster& cluster, std::string_view table,
                                    const std::string& path,
                                    const RecordOptions& options) {
  ClusterCore& core = *cluster.core();
  Cancellation stop(core.stop());
  const std::stop_callback on_stop(options.stop, [&] { stop.Cancel(); });
  ROWHOUSE_ASSIGN_OR_RETURN(
      TableInfo info,
      internal::ReadTable(core, table, core.Context(options.timeout, stop)));
  return Recorder(core, std::move(info), options, stop).Run(path);
}

}  // namespace rowhouse::client::push_log
