#ifndef ROWHOUSE_CLIENT_INTERNAL_LINK_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_LINK_CHANNEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "client/internal/forwarding_shard_channel.h"
#include "client/internal/server_link.h"
#include "grpcpp/channel.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/lm_head_service.grpc.pb.h"
#include "rowhouse/v1/transport_service.grpc.pb.h"

namespace rowhouse::client::internal {

/// A channel whose pulls and pushes of many rows go over a link (NCCL) where
/// the server offers one and this process has a GPU of its own, and everything
/// else, and whatever a link fails at, over the inner channel.
///
/// One link serves all calls: transfers follow each other.
///
/// Thread-safe.
class LinkChannel final : public ForwardingShardChannel {
 public:
  /// `connection` carries the control calls; calls of fewer rows than
  /// `least_row_count` go over `inner`.
  LinkChannel(std::unique_ptr<ShardChannel> inner,
              std::shared_ptr<grpc::Channel> connection, LinkSettings settings,
              int64_t least_row_count);

  absl::StatusOr<PullAnswer> Pull(const PullCall& call, RowSink sink,
                                  const CallContext& context) override;
  absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                  const CallContext& context) override;

  absl::StatusOr<std::unique_ptr<HeadStream>> OpenHead(
      const HeadHeader& header, const CallContext& context) override;

  /// Calls that went over a link to their end, head calls that began it, and
  /// pulls and pushes that went on without it after it had failed.
  int64_t pull_count() const { return pulls_; }
  int64_t push_count() const { return pushes_; }
  int64_t head_count() const { return heads_opened_; }
  int64_t failed_count() const { return failed_; }

  /// Tests: called at the beginning of each transfer.
  void set_on_transfer(std::function<void(ServerLink&)> on_transfer) {
    on_transfer_ = std::move(on_transfer);
  }

 private:
  using Link = std::shared_ptr<ServerLink>;

  Link Find() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::optional<PullAnswer>> TryPull(const PullCall& call,
                                                    ServerLink& link,
                                                    RowSink sink,
                                                    const CallContext& context);
  absl::StatusOr<std::optional<PushAnswer>> TryPush(const PushCall& call,
                                                    ServerLink& link,
                                                    const CallContext& context);
  absl::StatusOr<std::optional<PushAnswer>> Lost(ServerLink& link,
                                                 const CallContext& context);

  v1::TransportService::Stub stub_;
  v1::LmHeadService::Stub heads_;
  LinkSettings settings_;
  const int64_t least_row_count_;
  std::function<void(ServerLink&)> on_transfer_;
  std::atomic<int64_t> pulls_ = 0;
  std::atomic<int64_t> pushes_ = 0;
  std::atomic<int64_t> heads_opened_ = 0;
  std::atomic<int64_t> failed_ = 0;
  Mutex mutex_;
  Link link_ ABSL_GUARDED_BY(mutex_);
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_);  // Before the next one.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_LINK_CHANNEL_H_
