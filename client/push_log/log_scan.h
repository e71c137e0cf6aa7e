#ifndef ROWHOUSE_CLIENT_PUSH_LOG_LOG_SCAN_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_LOG_SCAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/record_stream.h"
#include "client/push_log/log_reader.h"
#include "client/push_log/push_log.h"

namespace rowhouse::client::push_log {

/// A part of an event in the file: where its pieces lie, by shard and position.
struct PartPlace {
  int32_t rank = 0;
  int32_t part = 0;
  bool head = false;
  /// Rows on all shards; or tokens, which are the same on every shard.
  int64_t item_count = 0;
  std::vector<int64_t> offsets;
};

/// A whole event in the file.
struct EventPlace {
  internal::RecordedEvent event;
  std::vector<PartPlace> parts;  ///< By rank and number.
};

/// Adds what an event holds.
void Count(const EventPlace& event, LogCounts& counts);

/// Goes through a log event by event, checks that everything is in its order,
/// and notes where parts lie; keeps no rows.
///
/// Thread-compatible.
class LogScan {
 public:
  /// Reads the header. Errors: those of `Inspect`; a file without a whole
  /// header is kDataLoss.
  static absl::StatusOr<std::unique_ptr<LogScan>> Open(const std::string& path);

  /// What the header and, at the end, the footer say; the rest is left out.
  const LogInfo& info() const { return info_; }
  LogReader& reader() { return *reader_; }

  /// The next whole event; nothing at the end, or where the file is cut off.
  absl::StatusOr<std::optional<EventPlace>> NextEvent();

 private:
  explicit LogScan(std::unique_ptr<LogReader> reader)
      : reader_(std::move(reader)) {}

  absl::Status ReadHeader();
  absl::StatusOr<bool> NextRecord();
  absl::Status BeginEvent(EventPlace& place) const;
  absl::StatusOr<bool> ReadParts(EventPlace& place, int32_t shard);
  absl::StatusOr<bool> ReadPart(PartPlace& part, int32_t shard);
  absl::Status ReadFooter();
  absl::Status Damage(std::string_view what) const {
    return reader_->DamageAt(record_offset_, what);
  }
  int32_t shard_count() const { return info_.spec.shard_count; }

  std::unique_ptr<LogReader> reader_;
  LogInfo info_;
  log::v1::LogRecord record_;
  int64_t record_offset_ = 0;
};

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_LOG_SCAN_H_
