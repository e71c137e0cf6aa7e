#include "client/internal/pull_task.h"

#include <utility>
#include <vector>

namespace rowhouse::client::internal {

void PullTask::Start(std::span<const int64_t> row_ids, std::span<std::byte> out,
                     const PullOptions& options) {
  Begin(row_ids, out, options, [this](absl::AnyInvocable<void()> work) {
    trainer_->cluster().pool().Schedule(std::move(work));
  });
}

void PullTask::Run(std::span<const int64_t> row_ids, std::span<std::byte> out,
                   const PullOptions& options) {
  Begin(row_ids, out, options, [](absl::AnyInvocable<void()> work) { work(); });
}

void PullTask::Begin(std::span<const int64_t> row_ids, std::span<std::byte> out,
                     const PullOptions& options,
                     absl::FunctionRef<void(absl::AnyInvocable<void()>)> run) {
  const auto row_count = static_cast<int64_t>(row_ids.size());
  absl::Status size =
      CheckBufferSize(out.size(), row_count, trainer_->table().row_bytes());
  if (!size.ok()) return Finish(std::move(size));
  absl::StatusOr<std::vector<RowSelection>> selections =
      SplitRows(trainer_->router().placement(), row_ids);
  if (!selections.ok()) return Finish(selections.status());
  const CallContext context =
      trainer_->cluster().Context(options.timeout, cancellation_);
  run([this, split = *std::move(selections), row_count, out, options,
       context]() mutable {
    Finish(trainer_->Pull(std::move(split), row_count, out.data(), options,
                          context));
  });
}

void PullTask::Finish(Result result) {
  MutexLock lock(mutex_);
  result_ = std::move(result);
  changed_.SignalAll();
}

bool PullTask::done() const {
  MutexLock lock(mutex_);
  return result_.has_value();
}

absl::StatusOr<std::shared_ptr<const PulledRows>> PullTask::Wait() {
  MutexLock lock(mutex_);
  while (!result_.has_value()) changed_.Wait(mutex_);
  return *result_;
}

}  // namespace rowhouse::client::internal
