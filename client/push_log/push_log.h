#ifndef ROWHOUSE_CLIENT_PUSH_LOG_PUSH_LOG_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_PUSH_LOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rowhouse/cluster.h"
#include "rowhouse/types.h"

/// Push logs: all parts, seals and commits of a table in one file, written
/// while training goes on, and applied again to another table. Training never
/// waits for a recorder.
///
/// Equal digests come of a replay on any shard count and backend, unless the
/// log has head parts (`LmHead`): their sums repeat on the same backend, device
/// and library versions with the same slices only.
///
/// `format.md` documents the file.
namespace rowhouse::client::push_log {

/// What a log, or a part of it, holds.
struct LogCounts {
  int64_t event_count = 0;
  int64_t skipped_event_count = 0;  ///< Of these.
  int64_t part_count = 0;
  int64_t head_part_count = 0;  ///< Of these.
  int64_t row_count = 0;        ///< Gradient rows of the pushed parts.
  int64_t token_count = 0;      ///< Of the head parts.
};

struct RecordProgress {
  int64_t event = 0;  ///< The last one that is whole in the file.
  LogCounts counts;
  int64_t size_bytes = 0;  ///< Of the file.
};

struct RecordOptions {
  /// Ends after this event; left out, with `stop` or a fault.
  std::optional<int64_t> last_event = std::nullopt;
  /// Ends the recording in order, after the last event that came whole; with a
  /// digest only if all servers answer. Not to be asked from a signal handler:
  /// give it a thread.
  std::stop_token stop = {};
  /// Bytes that each shard may hold for the recorder, for when it falls behind;
  /// 0: the most that two events can have. Counts against servers' memory.
  int64_t buffer_bytes = 0;
  /// Takes the table's digest at the start and the end, where that is possible.
  /// Each is a pass over the table's rows.
  bool digest = true;
  bool overwrite = false;  ///< An existing file.
  /// Of the opening, and of the last digest.
  absl::Duration timeout = absl::Seconds(60);
  /// Called on the recorder's thread after the start and each event; quick.
  std::function<void(const RecordProgress&)> progress = nullptr;
};

struct RecordReport {
  int64_t start_event = 0;  ///< The event before the first of the log.
  int64_t last_event = 0;   ///< `start_event` when there is none.
  LogCounts counts;
  int64_t size_bytes = 0;
  std::optional<TableDigest> start_digest = std::nullopt;
  std::optional<TableDigest> end_digest = std::nullopt;
  /// Why there is no `end_digest` of a recording that was told to end, or OK:
  /// FAILED_PRECONDITION (EVENT_PAST) where training has gone on, a server that
  /// is silent.
  absl::Status digest_fault;
  /// Why it ended before it was told to, or OK: RESOURCE_EXHAUSTED
  /// (RECORDER_BEHIND), ABORTED (TABLE_REWRITTEN), a server that has gone;
  /// names the server. The log is good all the same, up to `last_event`.
  absl::Status fault;
};

/// Writes the events of `table` that are applied from now on to a new file.
///
/// Errors, and there is no log then:
///   kNotFound           no such table.
///   kAlreadyExists      the file is there; see `overwrite`.
///   kResourceExhausted  MEMORY: of `buffer_bytes`; RECORDINGS_OPEN.
///   kCancelled          by `stop`, before it began.
///   kInternal           the shards disagree on an event.
///   Those of the file (`file_fault.h`); it then holds whole events up to the
///   fault, and the message names the last.
absl::StatusOr<RecordReport> Record(Cluster& cluster, std::string_view table,
                                    const std::string& path,
                                    const RecordOptions& options = {});

/// What a file says of itself.
struct LogInfo {
  std::string table;
  TableSpec spec;
  std::vector<int64_t> shard_bounds;  ///< Of the recorded table.
  /// By shard: what the bits of head parts depend on besides the log.
  std::vector<std::string> arithmetic;
  int64_t start_event = 0;
  int64_t last_event = 0;  ///< The last that is whole, or `start_event`.
  LogCounts counts;
  std::optional<TableDigest> start_digest = std::nullopt;
  std::optional<TableDigest> end_digest = std::nullopt;
  /// Whether the recording was ended in order. False: the file is cut off, or
  /// still being written.
  bool complete = false;
  std::string fault;           ///< Why the recording ended early, if it did.
  int64_t size_bytes = 0;      ///< Of the file.
  int64_t whole_bytes = 0;     ///< Of its whole events.
  int64_t most_row_count = 0;  ///< Rows of one trainer in one event, at most.
  /// As they stand after the last event.
  std::vector<TrainerCountChange> trainer_counts;
};

/// Reads a whole log, and checks every byte.
///
/// Errors, all of `file_fault.h`:
///   kNotFound         no such file.
///   kDataLoss         it is no push log, or damaged; names the offset.
///   kUnimplemented    of a later format version.
///   Those of the system.
absl::StatusOr<LogInfo> Inspect(const std::string& path);

struct ReplayProgress {
  int64_t event = 0;        ///< Applied.
  int64_t event_count = 0;  ///< Events applied so far, of
  int64_t log_event_count = 0;
  LogCounts counts;
};

struct ReplayOptions {
  /// Of a table that the replay creates; left out, that of the log.
  std::optional<int32_t> shard_count = std::nullopt;
  /// Ends after the event under way; `Cluster::CancelCalls` ends that too.
  std::stop_token stop = {};
  absl::Duration timeout = absl::Seconds(60);  ///< Of each call.
  /// Called on the caller's thread after each event; quick.
  std::function<void(const ReplayProgress&)> progress = nullptr;
  /// Told before the first event what is known of `ReplayReport::warning` by
  /// then, if anything is.
  std::function<void(const std::string&)> warn = nullptr;
};

struct ReplayReport {
  bool created = false;  ///< The table was not there.
  int64_t start_event = 0;
  int64_t last_event = 0;  ///< Applied.
  LogCounts counts;        ///< Applied.
  TableDigest digest;      ///< Of the table, after it.
  /// The recorded table's at the same event; nothing: not in the log.
  std::optional<TableDigest> recorded_digest = std::nullopt;
  bool complete = false;  ///< As `LogInfo`; false: applied up to the cut.
  std::string fault;      ///< As `LogInfo`.
  bool has_head_parts = false;
  /// Head parts whose merged statistics were other bits than the recorded ones:
  /// another backend, device, library or other slices.
  int64_t differing_head_part_count = 0;
  /// What the user is to know of equal digests and of cuts; or empty.
  std::string warning;

  /// Nothing: the log has no digest to compare with.
  std::optional<bool> digests_equal() const {
    if (!recorded_digest.has_value()) return std::nullopt;
    return *recorded_digest == digest;
  }
};

/// Applies a log to `table`: one that it creates as the log says, or one that
/// is as the recorded one was at the start. Takes the place of all its
/// trainers. Holds about one part at a time.
///
/// Errors:
///   kFailedPrecondition  the table is not as at the log's start, or another
///                        kind of table; says what to do.
///   kInvalidArgument     the table to be made has more shards than there are
///                        servers; names a `shard_count` that fits.
///   kCancelled           by `Cluster::CancelCalls`.
///   Those of `Inspect`, `Cluster::CreateTable` and `Trainer`.
absl::StatusOr<ReplayReport> Replay(Cluster& cluster, std::string_view table,
                                    const std::string& path,
                                    const ReplayOptions& options = {});

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_PUSH_LOG_H_
