#include "client/internal/pull_task.h"

#include <utility>

namespace rowhouse::client::internal {

void PullTask::Start(const Split& split, std::span<std::byte> out,
                     const PullOptions& options) {
  Begin(split, out, options, [this](absl::AnyInvocable<void()> work) {
    trainer_->cluster().pool().Schedule(std::move(work));
  });
}

void PullTask::Run(const Split& split, std::span<std::byte> out,
                   const PullOptions& options) {
  Begin(split, out, options, [](absl::AnyInvocable<void()> work) { work(); });
}

void PullTask::Begin(const Split& split, std::span<std::byte> out,
                     const PullOptions& options,
                     absl::FunctionRef<void(absl::AnyInvocable<void()>)> run) {
  if (!split.ok()) return Finish(split.status());
  absl::Status size = CheckBufferSize(out.size(), (*split)->row_count(),
                                      trainer_->table().row_bytes());
  if (!size.ok()) return Finish(std::move(size));
  const absl::StatusOr<kernels::Backend*> device =
      trainer_->cluster().DeviceOf(out);
  if (!device.ok()) return Finish(device.status());
  const CallContext context =
      trainer_->cluster().Context(options.timeout, cancellation_);
  run([this, rows = *split, buffer = RowBuffer{out.data(), *device}, options,
       context]() mutable {
    Finish(trainer_->Pull(std::move(rows), buffer, options, context));
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
