#ifndef ROWHOUSE_CLIENT_INTERNAL_PULL_TASK_H_
#define ROWHOUSE_CLIENT_INTERNAL_PULL_TASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/internal/cancellation.h"
#include "client/internal/trainer_core.h"
#include "kernels/mutex.h"

namespace rowhouse::client::internal {

/// One pull, on a thread of the cluster's pool or on the caller's. `Wait`
/// before it is destroyed.
///
/// Thread-safe.
class PullTask {
 public:
  explicit PullTask(std::shared_ptr<TrainerCore> trainer)
      : trainer_(std::move(trainer)), cancellation_(trainer_->stop()) {}

  /// What is to be pulled, or why not.
  using Split = absl::StatusOr<std::shared_ptr<const RowSplit>>;

  /// One of these is called, once. `Run` returns when the pull is done.
  void Start(const Split& split, std::span<std::byte> out,
             const PullOptions& options);
  void Run(const Split& split, std::span<std::byte> out,
           const PullOptions& options);

  void Cancel() { cancellation_.Cancel(); }
  bool done() const;
  absl::StatusOr<std::shared_ptr<const PulledRows>> Wait();

 private:
  using Result = absl::StatusOr<std::shared_ptr<const PulledRows>>;

  // Hands what is left to do to `run`.
  void Begin(const Split& split, std::span<std::byte> out,
             const PullOptions& options,
             absl::FunctionRef<void(absl::AnyInvocable<void()>)> run);
  void Finish(Result result);

  const std::shared_ptr<TrainerCore> trainer_;
  Cancellation cancellation_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_PULL_TASK_H_
