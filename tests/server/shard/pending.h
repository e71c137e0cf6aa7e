#ifndef ROWHOUSE_TESTS_SERVER_SHARD_PENDING_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_PENDING_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "kernels/mutex.h"

namespace rowhouse::testing {

/// The answer of an asynchronous call, of any type that can be moved.
///
/// Thread-safe.
template <typename Answer>
class Pending {
 public:
  /// What the call is given to call.
  absl::AnyInvocable<void(Answer)> Callback() {
    return [state = state_](Answer answer) {
      MutexLock lock(state->mutex);
      state->answer = std::move(answer);
      state->answered.SignalAll();
    };
  }

  bool IsDone() const {
    MutexLock lock(state_->mutex);
    return state_->answer.has_value();
  }

  /// Waits for the answer and takes it: once.
  Answer Wait() {
    MutexLock lock(state_->mutex);
    while (!state_->answer.has_value()) state_->answered.Wait(state_->mutex);
    return *std::exchange(state_->answer, std::nullopt);
  }

 private:
  struct State {
    Mutex mutex;
    CondVar answered;
    std::optional<Answer> answer ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_PENDING_H_
