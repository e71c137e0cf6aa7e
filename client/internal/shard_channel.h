#ifndef ROWHOUSE_CLIENT_INTERNAL_SHARD_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_SHARD_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "client/internal/head_stream.h"
#include "client/internal/row_selection.h"
#include "kernels/host_pieces.h"
#include "rowhouse/event_state.h"
#include "rowhouse/observer.h"
#include "rowhouse/types.h"

namespace rowhouse::kernels {
class Backend;
}  // namespace rowhouse::kernels

namespace rowhouse::client::internal {

/// A table as one server sees it.
struct ShardTable {
  std::string name;  ///< Short.
  TableSpec spec;
  std::vector<int64_t> bounds;
  int32_t shard_index = 0;
  int64_t event = 0;
  std::vector<TrainerCountChange> trainer_counts;
  int64_t reserved_bytes = 0;
};

struct ShardTablePage {
  std::vector<ShardTable> tables;
  std::string next_page_token;
};

struct ShardDigest {
  int64_t event = 0;
  uint64_t row_sum = 0;
  uint64_t history_sum = 0;
};

/// So many parts of a rank's contribution to a dense table's event, counted
/// from part 0, are in its gradient buffer.
struct FoldedParts {
  int64_t event = 0;
  int32_t rank = 0;
  int32_t part_count = 0;
};

/// What a `GetEventState` waits for; each that is set.
struct EventWait {
  std::optional<int64_t> sealed_event = std::nullopt;  ///< By all ranks.
  std::optional<int64_t> applied_event = std::nullopt;
  std::optional<FoldedParts> folded = std::nullopt;  ///< Or its event applied.
};

/// Exact sums by biased exponent (kernels::GradientStatistics).
struct ShardStatistics {
  std::vector<int64_t> significand_sums;
  int64_t row_count = 0;
  int64_t non_finite_row_count = 0;
};

/// Told how far a pull has come, on the thread that makes it. A channel that
/// begins anew tells it anew; not every channel has both.
class PullWatch {
 public:
  virtual ~PullWatch() = default;
  virtual void IdsSent() = 0;
  virtual void RowsBegin() = 0;  ///< The shard has begun to answer.
};

struct PullCall {
  std::string_view table;
  std::span<const int64_t> row_ids;
  int64_t row_bytes = 0;  ///< Of a row, as the caller knows the table.
  std::optional<int64_t> handle = std::nullopt;  ///< In place of `row_ids`.
  std::optional<TrainerSession> trainer = std::nullopt;
  std::optional<int64_t> min_event = std::nullopt;
  std::optional<int64_t> exact_event = std::nullopt;
  bool return_handle = false;
  bool training = false;
  /// Where the rows may be put, all of them in order; null where they go to
  /// several places. A channel that does so passes none to the sink.
  std::byte* landing = nullptr;
  /// Where they go to several places: row i to row `positions[i]` of `buffer`.
  std::byte* buffer = nullptr;
  std::span<const int64_t> positions = {};
  /// Whose memory `landing` and `buffer` are; null: the host's. Then
  /// `positions` may be the device's too; and `device_row_ids`, unless empty,
  /// is a copy of `row_ids` there.
  kernels::Backend* device = nullptr;
  std::span<const int64_t> device_row_ids = {};
  std::optional<RowIdBounds> bounds =
      std::nullopt;            ///< Of `row_ids`, if known.
  PullWatch* watch = nullptr;  ///< If not null.
};

struct PullAnswer {
  int64_t event = 0;
  int64_t handle = 0;
  int64_t row_count = 0;
  bool landed = false;  ///< At `PullCall::landing`.
  Path path = Path::kGrpc;
};

/// Takes whole rows of an answer, the first of them at position `first_row`; in
/// order, on the calling thread. A fault ends the call with it.
using RowSink = absl::FunctionRef<absl::Status(
    int64_t first_row, const kernels::HostPieces& rows)>;

struct PushCall {
  std::string_view table;
  TrainerSession trainer;
  int64_t event = 0;
  int32_t part = 0;
  DType dtype = DType::kBf16;
  /// This shard's rows of the caller's buffer; ids are sent unless `handles`
  /// name the rows.
  const RowSelection* selection = nullptr;
  std::vector<int64_t> handles;
  const std::byte* rows = nullptr;  ///< The caller's whole buffer.
  /// Whose memory `rows` is; null: the host's (`GatherPart`). Then `positions`,
  /// those of the selection, may be the device's too; and `device_row_ids`,
  /// unless empty, is a copy of the selection's there.
  kernels::Backend* device = nullptr;
  std::span<const int64_t> positions = {};
  std::span<const int64_t> device_row_ids = {};
  int64_t row_bytes = 0;
  int64_t message_row_count = 0;  ///< Rows of a message.
  std::optional<int32_t> seal_part_count = std::nullopt;
};

/// Asks for the events that are applied from now on (`record_stream.h`).
struct RecordCall {
  std::string_view table;
  int64_t buffer_bytes = 0;  ///< That the shard may hold; 0: its default.
  std::optional<int64_t> last_event = std::nullopt;  ///< The stream's end.
  bool digest = false;        ///< At the start, and after `last_event`.
  bool targets_only = false;  ///< Of head parts.
};

class CheckpointChannel;
class RecordStream;

struct PushAnswer {
  int64_t event = 0;
  int64_t row_count = 0;
  bool duplicate = false;
  Path path = Path::kGrpc;
};

/// One server, as the library calls it: the boundary between what is decided
/// (split, merge, retry, commit) and how it travels. Table names are short.
///
/// Every call blocks until its answer, its deadline or its cancellation, is
/// made once, and ends with the codes and reasons of `rowhouse/v1/*.proto`.
///
/// Thread-safe.
class ShardChannel {
 public:
  virtual ~ShardChannel() = default;

  virtual const std::string& address() const = 0;

  virtual absl::StatusOr<ServerInfo> GetServer(const CallContext& context) = 0;

  // Tables.
  virtual absl::StatusOr<ShardTable> CreateTable(
      std::string_view table, const TableSpec& spec,
      const CallContext& context) = 0;
  virtual absl::StatusOr<ShardTable> GetTable(std::string_view table,
                                              const CallContext& context) = 0;
  virtual absl::StatusOr<ShardTablePage> ListTables(
      const std::string& page_token, const CallContext& context) = 0;
  virtual absl::Status UpdateTable(std::string_view table,
                                   int32_t trainer_count, int64_t from_event,
                                   const CallContext& context) = 0;
  virtual absl::Status ResetTable(std::string_view table,
                                  const CallContext& context) = 0;
  virtual absl::Status DeleteTable(std::string_view table,
                                   const CallContext& context) = 0;
  virtual absl::StatusOr<ShardDigest> DigestTable(
      std::string_view table, std::optional<int64_t> exact_event,
      const CallContext& context) = 0;
  /// `rows` is whole rows of `row_bytes`, in one call.
  virtual absl::Status ImportRows(std::string_view table, int64_t first_row_id,
                                  DType dtype, int64_t row_bytes,
                                  std::span<const std::byte> rows,
                                  const CallContext& context) = 0;

  // Sessions and events.
  /// Returns the lease.
  virtual absl::StatusOr<absl::Duration> OpenSession(
      std::string_view table, TrainerSession trainer, int64_t owner,
      const CallContext& context) = 0;
  /// Returns the lease.
  virtual absl::StatusOr<absl::Duration> KeepAlive(
      std::string_view table, TrainerSession trainer,
      const CallContext& context) = 0;
  virtual absl::Status Seal(std::string_view table, TrainerSession trainer,
                            int64_t event, int32_t part_count,
                            const CallContext& context) = 0;
  virtual absl::Status Discard(std::string_view table, TrainerSession trainer,
                               int64_t event, const CallContext& context) = 0;
  virtual absl::StatusOr<EventState> GetEventState(
      std::string_view table, const EventWait& wait,
      const CallContext& context) = 0;
  virtual absl::StatusOr<ShardStatistics> GetEventStatistics(
      std::string_view table, int64_t event, const CallContext& context) = 0;
  virtual absl::Status Commit(std::string_view table, TrainerSession trainer,
                              int64_t event, const EventCommit& commit,
                              const CallContext& context) = 0;

  // Rows.
  virtual absl::StatusOr<PullAnswer> Pull(const PullCall& call, RowSink sink,
                                          const CallContext& context) = 0;
  virtual absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                          const CallContext& context) = 0;

  // Recordings. The stream must not outlive the channel, nor what `context`
  // names; its deadline is that of the whole stream.
  virtual absl::StatusOr<std::unique_ptr<RecordStream>> OpenRecording(
      const RecordCall& call, const CallContext& context) = 0;

  // The language-model head. The stream must not outlive the channel; the
  // header's views last as long as the call.
  virtual absl::StatusOr<std::unique_ptr<HeadStream>> OpenHead(
      const HeadHeader& header, const CallContext& context) = 0;

  /// The server's checkpoints; lasts as long as the channel.
  virtual CheckpointChannel& checkpoints() = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_SHARD_CHANNEL_H_
