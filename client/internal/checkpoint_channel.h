#ifndef ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::client::internal {

/// Told how far a call is, on the thread that makes it.
using ProgressSink = absl::FunctionRef<void(const CheckpointProgress&)>;

struct CheckpointPage {
  std::vector<CheckpointInfo> checkpoints;
  std::string next_page_token;
};

/// What a server does with checkpoints, as the library calls it (`ShardChannel`
/// has the rules). Names are short; every table of a plan has its event.
///
/// Thread-safe.
class CheckpointChannel {
 public:
  virtual ~CheckpointChannel() = default;

  /// The first progress says that the shards are armed.
  virtual absl::Status Write(const CheckpointPlan& plan, ProgressSink progress,
                             const CallContext& context) = 0;
  virtual absl::StatusOr<PublishedCheckpoint> Publish(
      const CheckpointPlan& plan, const CallContext& context) = 0;
  virtual absl::Status Restore(std::string_view checkpoint,
                               std::string_view table, ProgressSink progress,
                               const CallContext& context) = 0;

  virtual absl::Status PutTrainerState(std::string_view checkpoint,
                                       int32_t rank,
                                       std::span<const std::byte> state,
                                       const CallContext& context) = 0;
  virtual absl::StatusOr<std::vector<std::byte>> GetTrainerState(
      std::string_view checkpoint, int32_t rank,
      const CallContext& context) = 0;

  virtual absl::StatusOr<CheckpointPage> List(const std::string& page_token,
                                              const CallContext& context) = 0;
  virtual absl::StatusOr<CheckpointInfo> Get(std::string_view checkpoint,
                                             const CallContext& context) = 0;
  /// `unfinished_only`: kAlreadyExists where it is whole.
  virtual absl::Status Delete(std::string_view checkpoint, bool unfinished_only,
                              const CallContext& context) = 0;

  virtual absl::Status Verify(std::string_view checkpoint,
                              ProgressSink progress,
                              const CallContext& context) = 0;
  virtual absl::StatusOr<std::vector<CheckpointTableDiff>> Diff(
      std::string_view checkpoint, std::string_view other,
      ProgressSink progress, const CallContext& context) = 0;
  virtual absl::Status Compact(std::string_view checkpoint,
                               std::string_view compact_name,
                               ProgressSink progress,
                               const CallContext& context) = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_CHECKPOINT_CHANNEL_H_
