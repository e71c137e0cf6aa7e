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
#include "client/internal/record_stream.h"
#include "client/internal/table_admin.h"
#include "client/push_log/log_writer.h"
#include "client/push_log/push_log.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

using internal::CallContext;
using internal::Cancellation;
using internal::ClusterCore;
using internal::RecordedEvent;
using internal::RecordedPart;
using internal::RecordingStart;
using internal::RecordMessage;
using internal::RecordStream;
using internal::ShardChannel;
using internal::ShardDigest;

// Openings until the shards begin at one event, or the start is made without a
// digest.
constexpr int kOpenings = 8;

// Of a record's messages only the parts are large.
absl::Status Unexpected(std::string_view what) {
  return absl::InternalError(
      absl::StrCat("a recording's stream has no ", std::string(what)));
}

bool SameEvent(const RecordedEvent& a, const RecordedEvent& b) {
  return a.event == b.event && a.commit == b.commit &&
         a.contributions == b.contributions;
}

int64_t PartCount(const RecordedEvent& event) {
  int64_t count = 0;
  for (const auto& contribution : event.contributions) {
    count += contribution.part_count;
  }
  return count;
}

void Fill(const TableDigest& digest, log::v1::LogDigest& proto) {
  proto.set_event(digest.event);
  proto.set_digest(static_cast<int64_t>(digest.digest));
}

class Recorder {
 public:
  Recorder(ClusterCore& cluster, TableInfo table, const RecordOptions& options)
      : cluster_(cluster), table_(std::move(table)), options_(options) {}

  absl::StatusOr<RecordReport> Run(const std::string& path) {
    const std::stop_callback on_stop(options_.stop, [this] { stop_.Cancel(); });
    ROWHOUSE_RETURN_IF_ERROR(OpenTogether());
    ROWHOUSE_ASSIGN_OR_RETURN(writer_,
                              LogWriter::Create(path, options_.overwrite));
    ROWHOUSE_RETURN_IF_ERROR(WriteHeader());
    Progress();
    while (report_.fault.ok() && !ended_) {
      absl::Status recorded = RecordEvent();
      if (recorded.ok()) continue;
      if (!from_stream_) return recorded;
      report_.fault = std::move(recorded);
    }
    if (options_.stop.stop_requested() && absl::IsCancelled(report_.fault)) {
      report_.fault = absl::OkStatus();
    }
    ROWHOUSE_RETURN_IF_ERROR(WriteFooter());
    return report_;
  }

 private:
  int32_t shard_count() const {
    return static_cast<int32_t>(table_.shards.size());
  }

  absl::Status Open();
  absl::Status OpenTogether();
  absl::StatusOr<std::optional<RecordMessage>> Read(int32_t shard);
  absl::StatusOr<std::optional<RecordedEvent>> ReadEvent(int32_t shard);
  absl::Status SkipToStart(int32_t shard);
  absl::Status RecordParts(int32_t shard, int64_t part_count);
  absl::Status RecordEvent();
  absl::Status WriteHeader();
  absl::Status WriteFooter();
  void Progress() const;

  ClusterCore& cluster_;
  const TableInfo table_;
  const RecordOptions& options_;
  Cancellation stop_;
  std::vector<std::unique_ptr<RecordStream>> streams_;  // By shard.
  std::vector<RecordingStart> starts_;
  std::unique_ptr<LogWriter> writer_;
  log::v1::LogRecord record_;
  RecordReport report_;
  std::vector<TrainerCountChange> trainer_counts_;  // Of the start.
  bool ended_ = false;                              // After `last_event`.
  bool from_stream_ = false;  // The last fault is a stream's.
};

// One opening on every shard, which may begin at different events.
absl::Status Recorder::Open() {
  streams_.clear();
  streams_.resize(shard_count());
  starts_.assign(shard_count(), {});
  const CallContext context = cluster_.Context(options_.timeout, &stop_);
  return cluster_.CallServers(
      shard_count(), context,
      [&](int32_t shard, ShardChannel& channel) -> absl::Status {
        ROWHOUSE_ASSIGN_OR_RETURN(
            streams_[shard],
            channel.OpenRecording({.table = table_.name,
                                   .buffer_bytes = options_.buffer_bytes,
                                   .last_event = options_.last_event,
                                   .digest = options_.digest,
                                   .targets_only = shard > 0},
                                  {absl::InfiniteFuture(), &stop_}));
        ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordMessage> first,
                                  streams_[shard]->Read());
        RecordingStart* const start =
            first.has_value() ? std::get_if<RecordingStart>(&*first) : nullptr;
        if (start == nullptr) return Unexpected("start");
        starts_[shard] = std::move(*start);
        return absl::OkStatus();
      });
}

// The log begins at the newest of the shards' starts: a commit that is on its
// way may have reached some shards only.
absl::Status Recorder::OpenTogether() {
  bool together = false;
  for (int opening = 0; opening < kOpenings && !together; ++opening) {
    ROWHOUSE_RETURN_IF_ERROR(Open());
    together = std::all_of(starts_.begin(), starts_.end(),
                           [&](const RecordingStart& start) {
                             return start.event == starts_[0].event;
                           });
  }
  const auto newest = std::max_element(
      starts_.begin(), starts_.end(),
      [](const auto& a, const auto& b) { return a.event < b.event; });
  report_.start_event = newest->event;
  report_.last_event = newest->event;
  trainer_counts_ = newest->trainer_counts;
  for (int32_t shard = 0; shard < shard_count(); ++shard) {
    ROWHOUSE_RETURN_IF_ERROR(SkipToStart(shard));
  }
  if (!together || !options_.digest) return absl::OkStatus();
  std::vector<ShardDigest> digests;
  for (const RecordingStart& start : starts_) {
    if (!start.digest.has_value()) return Unexpected("digest");
    digests.push_back(*start.digest);
  }
  ROWHOUSE_ASSIGN_OR_RETURN(report_.start_digest,
                            internal::MergeDigests(digests));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RecordMessage>> Recorder::Read(int32_t shard) {
  absl::StatusOr<std::optional<RecordMessage>> message =
      streams_[shard]->Read();
  if (message.ok()) return message;
  from_stream_ = true;
  return internal::AtAddress(message.status(),
                             cluster_.channel(shard).address());
}

absl::StatusOr<std::optional<RecordedEvent>> Recorder::ReadEvent(
    int32_t shard) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordMessage> message, Read(shard));
  if (!message.has_value()) return std::nullopt;
  RecordedEvent* const event = std::get_if<RecordedEvent>(&*message);
  if (event == nullptr) return Unexpected("event where it should have one");
  return std::move(*event);
}

// Passes over the events of a shard that began earlier than the log.
absl::Status Recorder::SkipToStart(int32_t shard) {
  for (int64_t event = starts_[shard].event; event < report_.start_event;
       ++event) {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<RecordedEvent> passed,
                              ReadEvent(shard));
    if (!passed.has_value()) return Unexpected("event before its last");
    for (int64_t left = PartCount(*passed); left > 0;) {
      ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<RecordMessage> message,
                                Read(shard));
      const RecordedPart* const part =
          message.has_value() ? std::get_if<RecordedPart>(&*message) : nullptr;
      if (part == nullptr) return Unexpected("part that it announced");
      if (part->first_item + std::ssize(part->ids) == part->item_count) --left;
    }
  }
  return absl::OkStatus();
}

absl::Status Recorder::RecordParts(int32_t shard, int64_t part_count) {
  while (part_count > 0) {
    ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordMessage> message,
                              Read(shard));
    RecordedPart* const part =
        message.has_value() ? std::get_if<RecordedPart>(&*message) : nullptr;
    if (part == nullptr) return Unexpected("part that it announced");
    if (part->first_item + std::ssize(part->ids) == part->item_count) {
      --part_count;
    }
    if (part->first_item == 0 && (shard == 0 || !part->head)) {
      (part->head ? report_.counts.token_count : report_.counts.row_count) +=
          part->item_count;
    }
    if (part->first_item == 0 && shard == 0) {
      ++report_.counts.part_count;
      report_.counts.head_part_count += part->head ? 1 : 0;
    }
    log::v1::LogPart& proto = *record_.mutable_part();
    proto.set_shard(shard);
    internal::TakeInto(*part, *proto.mutable_part());
    ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  }
  return absl::OkStatus();
}

absl::Status Recorder::RecordEvent() {
  const LogCounts before = report_.counts;
  std::optional<RecordedEvent> event;
  std::vector<ShardDigest> digests;
  const absl::Status recorded = [&]() -> absl::Status {
    for (int32_t shard = 0; shard < shard_count(); ++shard) {
      ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordedEvent> next,
                                ReadEvent(shard));
      if (!next.has_value()) {
        if (event.has_value()) return Unexpected("event that others have");
        ended_ = true;
        return absl::OkStatus();
      }
      if (next->digest.has_value()) digests.push_back(*next->digest);
      if (shard == 0) {
        event = std::move(next);
        internal::Fill(*event, *record_.mutable_event());
        ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
      } else if (!SameEvent(*event, *next)) {
        return Unexpected(
            absl::StrCat("event ", event->event, " as shard 0 has it"));
      }
      ROWHOUSE_RETURN_IF_ERROR(RecordParts(shard, PartCount(*event)));
    }
    record_.mutable_event_end()->set_event(event->event);
    return writer_->Append(record_);
  }();
  if (!recorded.ok()) {
    report_.counts = before;
    ROWHOUSE_RETURN_IF_ERROR(writer_->Rewind());
    return recorded;
  }
  if (ended_) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(writer_->MarkWhole());
  report_.last_event = event->event;
  ++report_.counts.event_count;
  if (std::holds_alternative<SkipEvent>(event->commit.update)) {
    ++report_.counts.skipped_event_count;
  }
  if (std::ssize(digests) == shard_count()) {
    ROWHOUSE_ASSIGN_OR_RETURN(report_.end_digest,
                              internal::MergeDigests(digests));
  }
  Progress();
  return absl::OkStatus();
}

absl::Status Recorder::WriteHeader() {
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
  internal::Fill(trainer_counts_, *header.mutable_trainer_counts());
  for (const RecordingStart& start : starts_) {
    header.add_arithmetic(start.arithmetic);
  }
  ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  return writer_->MarkWhole();
}

absl::Status Recorder::WriteFooter() {
  stop_.Cancel();
  streams_.clear();  // The shards need not hold anything for them.
  // After a fault the table may have been rewritten; where training goes on
  // there is no digest, for the event is past.
  if (options_.digest && report_.fault.ok() &&
      !report_.end_digest.has_value()) {
    absl::StatusOr<TableDigest> digest =
        internal::ReadDigest(cluster_, table_, report_.last_event,
                             cluster_.Context(options_.timeout));
    if (digest.ok()) report_.end_digest = *digest;
  }
  log::v1::LogFooter& footer = *record_.mutable_footer();
  footer.set_last_event(report_.last_event);
  if (report_.end_digest.has_value()) {
    Fill(*report_.end_digest, *footer.mutable_digest());
  }
  if (!report_.fault.ok()) footer.set_fault(report_.fault.ToString());
  ROWHOUSE_RETURN_IF_ERROR(writer_->Append(record_));
  report_.size_bytes = writer_->size_bytes();
  return writer_->Close();
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
  ROWHOUSE_ASSIGN_OR_RETURN(
      TableInfo info, cluster.GetTable(table, {.timeout = options.timeout}));
  return Recorder(*cluster.core(), std::move(info), options).Run(path);
}

}  // namespace rowhouse::client::push_log
