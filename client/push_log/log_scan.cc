#include "client/push_log/log_scan.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/record_convert.h"
#include "client/push_log/file_fault.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

using internal::RecordedContribution;
using internal::RecordedPart;

std::optional<TableDigest> DigestOf(bool has, const log::v1::LogDigest& proto) {
  if (!has) return std::nullopt;
  return TableDigest{static_cast<uint64_t>(proto.digest()), proto.event()};
}

}  // namespace

void Count(const EventPlace& event, LogCounts& counts) {
  ++counts.event_count;
  if (std::holds_alternative<SkipEvent>(event.event.commit.update)) {
    ++counts.skipped_event_count;
  }
  for (const PartPlace& part : event.parts) {
    ++counts.part_count;
    counts.head_part_count += part.head ? 1 : 0;
    (part.head ? counts.token_count : counts.row_count) += part.item_count;
  }
}

absl::StatusOr<std::unique_ptr<LogScan>> LogScan::Open(
    const std::string& path) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<LogReader> reader,
                            LogReader::Open(path));
  std::unique_ptr<LogScan> scan(new LogScan(std::move(reader)));
  ROWHOUSE_RETURN_IF_ERROR(scan->ReadHeader());
  return scan;
}

absl::StatusOr<bool> LogScan::NextRecord() {
  record_offset_ = reader_->offset();
  return reader_->Next(record_);
}

absl::Status LogScan::ReadHeader() {
  ROWHOUSE_ASSIGN_OR_RETURN(const bool whole, NextRecord());
  if (!whole) return Damage("the header is cut off");
  if (!record_.has_header()) return Damage("wanted the header");
  const log::v1::LogHeader& header = record_.header();
  absl::StatusOr<TableSpec> spec = internal::FromProto(header.spec());
  if (!spec.ok()) {
    return FileFault(
        spec.status().code(), kOtherVersion, reader_->path(),
        absl::StrCat("the recorded table: ", spec.status().message()));
  }
  info_.spec = *std::move(spec);
  info_.table = header.table();
  info_.shard_bounds = {header.shard_bounds().begin(),
                        header.shard_bounds().end()};
  info_.arithmetic = {header.arithmetic().begin(), header.arithmetic().end()};
  info_.start_event = header.start_event();
  info_.last_event = header.start_event();
  info_.start_digest =
      DigestOf(header.has_start_digest(), header.start_digest());
  info_.trainer_counts = internal::FromProto(header.trainer_counts());
  info_.size_bytes = reader_->size_bytes();
  info_.whole_bytes = reader_->offset();
  if (shard_count() < 1 ||
      std::ssize(info_.shard_bounds) != int64_t{shard_count()} + 1) {
    return Damage("the header's shard bounds are not those of its shards");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<EventPlace>> LogScan::NextEvent() {
  if (info_.complete) return std::nullopt;
  ROWHOUSE_ASSIGN_OR_RETURN(const bool found, NextRecord());
  if (!found) return std::nullopt;
  if (record_.has_footer()) {
    ROWHOUSE_RETURN_IF_ERROR(ReadFooter());
    return std::nullopt;
  }
  EventPlace place;
  ROWHOUSE_RETURN_IF_ERROR(BeginEvent(place));
  for (int32_t shard = 0; shard < shard_count(); ++shard) {
    ROWHOUSE_ASSIGN_OR_RETURN(const bool whole, ReadParts(place, shard));
    if (!whole) return std::nullopt;
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const bool ended, NextRecord());
  if (!ended) return std::nullopt;
  if (!record_.has_event_end() ||
      record_.event_end().event() != place.event.event) {
    return Damage("wanted the end of the event");
  }
  info_.last_event = place.event.event;
  info_.trainer_counts = place.event.trainer_counts;
  info_.whole_bytes = reader_->offset();
  return place;
}

absl::Status LogScan::BeginEvent(EventPlace& place) const {
  if (!record_.has_event() || record_.event().event() != info_.last_event + 1) {
    return Damage("wanted the next event, or the footer");
  }
  place.event = internal::FromProto(record_.event());
  int32_t rank = 0;
  for (const RecordedContribution& contribution : place.event.contributions) {
    if (contribution.rank != rank++ || contribution.part_count < 0) {
      return Damage("the event's contributions are not in rank order");
    }
    for (int32_t part = 0; part < contribution.part_count; ++part) {
      place.parts.push_back({contribution.rank, part, false, 0, {}});
    }
  }
  return absl::OkStatus();
}

// False where the file is cut off.
absl::StatusOr<bool> LogScan::ReadParts(EventPlace& place, int32_t shard) {
  for (PartPlace& part : place.parts) {
    ROWHOUSE_ASSIGN_OR_RETURN(const bool whole, ReadPart(part, shard));
    if (!whole) return false;
  }
  return true;
}

absl::StatusOr<bool> LogScan::ReadPart(PartPlace& part, int32_t shard) {
  int64_t next = 0;
  int64_t count = 0;
  do {
    ROWHOUSE_ASSIGN_OR_RETURN(const bool found, NextRecord());
    if (!found) return false;
    if (!record_.has_part() || record_.part().shard() != shard) {
      return Damage("wanted a part of another shard");
    }
    absl::StatusOr<RecordedPart> piece =
        internal::TakeFromProto(*record_.mutable_part()->mutable_part());
    if (!piece.ok()) return Damage(std::string(piece.status().message()));
    const bool first = next == 0;
    if (first) count = piece->item_count;
    if (piece->rank != part.rank || piece->part != part.part ||
        piece->first_item != next || piece->item_count != count ||
        (count > 0 && piece->ids.empty() && piece->class_weights.empty()) ||
        (!(first && shard == 0) && piece->head != part.head)) {
      return Damage("wanted the next piece of another part");
    }
    part.head = piece->head;
    part.offsets.push_back(record_offset_);
    next += std::ssize(piece->ids);
  } while (next < count);
  if (!part.head) {
    part.item_count += count;
  } else if (shard == 0) {
    part.item_count = count;
  } else if (part.item_count != count) {
    return Damage("a head part of another token count than on shard 0");
  }
  return true;
}

absl::Status LogScan::ReadFooter() {
  const log::v1::LogFooter& footer = record_.footer();
  if (footer.last_event() != info_.last_event) {
    return Damage("the footer is of another event");
  }
  if (reader_->offset() != reader_->size_bytes()) {
    return reader_->DamageAt(reader_->offset(), "bytes after the footer");
  }
  info_.complete = true;
  info_.fault = footer.fault();
  info_.end_digest = DigestOf(footer.has_digest(), footer.digest());
  info_.whole_bytes = reader_->offset();
  return absl::OkStatus();
}

}  // namespace rowhouse::client::push_log
