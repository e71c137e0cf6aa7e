#ifndef ROWHOUSE_CLIENT_INTERNAL_OBSERVED_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_OBSERVED_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "client/internal/forwarding_shard_channel.h"
#include "rowhouse/observer.h"

namespace rowhouse::client::internal {

/// Tells an observer of a shard's pulls, pushes and events.
///
/// Thread-safe.
class ObservedChannel final : public ForwardingShardChannel {
 public:
  ObservedChannel(std::unique_ptr<ShardChannel> inner, int32_t shard,
                  Observer observer)
      : ForwardingShardChannel(std::move(inner)),
        shard_(shard),
        observer_(std::move(observer)) {}

  absl::Status Seal(std::string_view table, TrainerSession trainer,
                    int64_t event, int32_t part_count,
                    const CallContext& context) override;
  absl::StatusOr<EventState> GetEventState(std::string_view table,
                                           const EventWait& wait,
                                           const CallContext& context) override;
  absl::Status Commit(std::string_view table, TrainerSession trainer,
                      int64_t event, const EventCommit& commit,
                      const CallContext& context) override;
  absl::StatusOr<PullAnswer> Pull(const PullCall& call, RowSink sink,
                                  const CallContext& context) override;
  absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                  const CallContext& context) override;

 private:
  const int32_t shard_;
  const Observer observer_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_OBSERVED_CHANNEL_H_
