#ifndef ROWHOUSE_CLIENT_INTERNAL_ONE_SIDED_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_ONE_SIDED_CHANNEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "client/internal/forwarding_shard_channel.h"
#include "client/internal/table_mapping.h"
#include "grpcpp/channel.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// A channel that takes the one-sided path for pulls, pushes and the tokens of
/// head calls where the server offers it, and the inner channel for everything
/// else, and whenever the path fails.
///
/// Thread-safe.
class OneSidedChannel final : public ForwardingShardChannel {
 public:
  /// `connection` carries the control calls.
  OneSidedChannel(std::unique_ptr<ShardChannel> inner,
                  std::shared_ptr<grpc::Channel> connection, MapBackend backend)
      : ForwardingShardChannel(std::move(inner)),
        stub_(connection),
        heads_(std::move(connection)),
        backend_(std::move(backend)) {}

  absl::StatusOr<PullAnswer> Pull(const PullCall& call, RowSink sink,
                                  const CallContext& context) override;
  absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                  const CallContext& context) override;
  absl::StatusOr<std::unique_ptr<HeadStream>> OpenHead(
      const HeadHeader& header, const CallContext& context) override;

  /// Calls that went the one-sided path to their end, head calls that began it,
  /// and gathers that were
  /// thrown away because the rows had changed under them.
  int64_t pull_count() const { return pulls_; }
  int64_t push_count() const { return pushes_; }
  int64_t head_count() const { return heads_opened_; }
  int64_t discarded_count() const { return discarded_; }

  /// Tests: called after rows have been loaded and before the epoch is.
  void set_after_gather(std::function<void()> after_gather) {
    after_gather_ = std::move(after_gather);
  }

 private:
  using Mapping = std::shared_ptr<TableMapping>;

  Mapping Find(std::string_view table, MappingUse use)
      ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<TableMapping::Window> WindowFor(const PullCall& call,
                                                 TableMapping& mapping,
                                                 int64_t number,
                                                 const CallContext& context);
  absl::StatusOr<std::optional<PullAnswer>> PullMapped(
      const PullCall& call, TableMapping& mapping, const TableMapping::Use& use,
      RowSink sink, const CallContext& context);
  absl::StatusOr<PushAnswer> PushMapped(const PushCall& call,
                                        const TableMapping::Use& use,
                                        const InboxPlace& place,
                                        const CallContext& context);
  absl::StatusOr<std::optional<PushAnswer>> TryPush(const PushCall& call,
                                                    TableMapping& mapping,
                                                    const CallContext& context);

  v1::TransportService::Stub stub_;
  v1::LmHeadService::Stub heads_;
  const MapBackend backend_;
  std::function<void()> after_gather_;
  std::atomic<int64_t> pulls_ = 0;
  std::atomic<int64_t> pushes_ = 0;
  std::atomic<int64_t> heads_opened_ = 0;
  std::atomic<int64_t> discarded_ = 0;
  Mutex mutex_;
  std::map<std::pair<std::string, MappingUse>, Mapping> mappings_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_ONE_SIDED_CHANNEL_H_
