#include "server/shard/lane_snapshot.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace rowhouse::server {

LaneSnapshot::LaneSnapshot(Lane& lane, ShardCore& core,
                           std::shared_ptr<OpenedSnapshot> opened,
                           std::function<void()> settle)
    : lane_(lane),
      core_(core),
      opened_(std::move(opened)),
      settle_(std::move(settle)) {}

LaneSnapshot::~LaneSnapshot() {
  lane_.PostInternal([&core = core_, opened = opened_, settle = settle_] {
    core.CloseSnapshot(*opened);
    settle();
  });
}

void LaneSnapshot::Run(absl::AnyInvocable<void()> task) {
  lane_.PostInternal([task = std::move(task), settle = settle_]() mutable {
    task();
    settle();
  });
}

void LaneSnapshot::Cut(absl::AnyInvocable<void(absl::Status)> done) {
  Run([&core = core_, opened = opened_, done = std::move(done)]() mutable {
    core.AwaitCut(*opened, std::move(done));
  });
}

void LaneSnapshot::Next(Done<std::unique_ptr<SnapshotPiece>> done) {
  Run([&core = core_, opened = opened_, done = std::move(done)]() mutable {
    core.NextPiece(*opened, std::move(done));
  });
}

void LaneSnapshot::NoteDurable() {
  Run([&core = core_, opened = opened_] { core.NoteDurable(*opened); });
}

SnapshotStatistics LaneSnapshot::statistics() const {
  return {opened_->before_image_row_count,
          absl::Nanoseconds(opened_->event_wait_nanoseconds.load())};
}

LaneRestoration::LaneRestoration(Lane& lane, ShardCore& core, int64_t number,
                                 std::function<void()> settle)
    : lane_(lane), core_(core), number_(number), settle_(std::move(settle)) {}

LaneRestoration::~LaneRestoration() {
  Run([&core = core_, number = number_] { core.AbandonRestoration(number); });
}

void LaneRestoration::Run(absl::AnyInvocable<void()> task) {
  lane_.PostInternal([task = std::move(task), settle = settle_]() mutable {
    task();
    settle();
  });
}

void LaneRestoration::Write(int64_t first_slot, int64_t row_count,
                            std::vector<std::span<const std::byte>> columns,
                            absl::AnyInvocable<void(absl::Status)> done) {
  Run([&core = core_, number = number_, first_slot, row_count,
       columns = std::move(columns), done = std::move(done)]() mutable {
    done(core.WriteRestored(number, first_slot, row_count, columns));
  });
}

void LaneRestoration::Finish(absl::AnyInvocable<void(absl::Status)> done) {
  Run([&core = core_, number = number_, done = std::move(done)]() mutable {
    done(core.FinishRestoration(number));
  });
}

}  // namespace rowhouse::server
