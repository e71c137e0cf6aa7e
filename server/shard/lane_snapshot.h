#ifndef ROWHOUSE_SERVER_SHARD_LANE_SNAPSHOT_H_
#define ROWHOUSE_SERVER_SHARD_LANE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/shard/lane.h"
#include "server/shard/opened_snapshot.h"
#include "server/shard/restoration.h"
#include "server/shard/shard_core.h"
#include "server/shard/snapshot.h"

namespace rowhouse::server {

/// Runs tasks on a shard's lane, and settles after each.
class LaneTasks {
 public:
  LaneTasks(Lane& lane, std::function<void()> settle)
      : lane_(lane), settle_(std::move(settle)) {}

  void Run(absl::AnyInvocable<void()> task);

 private:
  Lane& lane_;
  const std::function<void()> settle_;
};

/// A snapshot behind its shard's lane; `settle` is called there after each of
/// its tasks.
class LaneSnapshot final : public Snapshot {
 public:
  /// All must outlive it.
  LaneSnapshot(Lane& lane, ShardCore& core,
               std::shared_ptr<OpenedSnapshot> opened,
               std::function<void()> settle);
  ~LaneSnapshot() override;

  const ShardState& state() const override { return opened_->state; }
  int64_t row_count() const override { return opened_->rows->row_count(); }
  std::span<const int64_t> slots() const override {
    return opened_->rows->slots();
  }
  std::optional<int64_t> base_event() const override {
    return opened_->base_event;
  }
  void Cut(absl::AnyInvocable<void(absl::Status)> done) override;
  void Next(Done<std::unique_ptr<SnapshotPiece>> done) override;
  void NoteDurable() override;
  SnapshotStatistics statistics() const override;

 private:
  LaneTasks tasks_;
  ShardCore& core_;
  const std::shared_ptr<OpenedSnapshot> opened_;
};

/// A restoration behind its shard's lane.
class LaneRestoration final : public Restoration {
 public:
  /// All must outlive it.
  LaneRestoration(Lane& lane, ShardCore& core, int64_t number,
                  std::function<void()> settle);
  ~LaneRestoration() override;

  void Write(int64_t first_slot, int64_t row_count,
             std::vector<std::span<const std::byte>> columns,
             absl::AnyInvocable<void(absl::Status)> done) override;
  void Finish(absl::AnyInvocable<void(absl::Status)> done) override;

 private:
  LaneTasks tasks_;
  ShardCore& core_;
  const int64_t number_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_LANE_SNAPSHOT_H_
