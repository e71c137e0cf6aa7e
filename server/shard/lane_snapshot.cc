#include "server/shard/lane_snapshot.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace rowhouse::server {

void LaneTasks::Run(absl::AnyInvocable<void()> task) {
  lane_.PostInternal([task = std::move(task), settle = settle_]() mutable {
    task();
    settle();
  });
}

LaneSnapshot::LaneSnapshot(Lane& lane, ShardCore& core,
                           std::shared_ptr<OpenedSnapshot> opened,
                           std::function<void()> settle)
    : tasks_(lane, std::move(settle)),
      core_(core),
      opened_(std::move(opened)) {}

LaneSnapshot::~LaneSnapshot() {
  tasks_.Run(
      [&core = core_, opened = opened_] { core.CloseSnapshot(*opened); });
}

void LaneSnapshot::Cut(absl::AnyInvocable<void(absl::Status)> done) {
  tasks_.Run(
      [&core = core_, opened = opened_, done = std::move(done)]() mutable {
        core.AwaitCut(*opened, std::move(done));
      });
}

void LaneSnapshot::Next(Done<std::unique_ptr<SnapshotPiece>> done) {
  tasks_.Run(
      [&core = core_, opened = opened_, done = std::move(done)]() mutable {
        core.NextPiece(*opened, std::move(done));
      });
}

void LaneSnapshot::NoteDurable() {
  tasks_.Run([&core = core_, opened = opened_] { core.NoteDurable(*opened); });
}

SnapshotStatistics LaneSnapshot::statistics() const {
  return {opened_->before_image_row_count,
          absl::Nanoseconds(opened_->event_wait_nanoseconds.load())};
}

LaneRestoration::LaneRestoration(Lane& lane, ShardCore& core, int64_t number,
                                 std::function<void()> settle)
    : tasks_(lane, std::move(settle)), core_(core), number_(number) {}

LaneRestoration::~LaneRestoration() {
  tasks_.Run(
      [&core = core_, number = number_] { core.AbandonRestoration(number); });
}

void LaneRestoration::Write(int64_t first_slot, int64_t row_count,
                            std::vector<std::span<const std::byte>> columns,
                            absl::AnyInvocable<void(absl::Status)> done) {
  tasks_.Run([&core = core_, number = number_, first_slot, row_count,
              columns = std::move(columns), done = std::move(done)]() mutable {
    done(core.WriteRestored(number, first_slot, row_count, columns));
  });
}

void LaneRestoration::Finish(absl::AnyInvocable<void(absl::Status)> done) {
  tasks_.Run(
      [&core = core_, number = number_, done = std::move(done)]() mutable {
        done(core.FinishRestoration(number));
      });
}

}  // namespace rowhouse::server
