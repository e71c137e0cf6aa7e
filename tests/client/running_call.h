#ifndef ROWHOUSE_TESTS_CLIENT_RUNNING_CALL_H_
#define ROWHOUSE_TESTS_CLIENT_RUNNING_CALL_H_

#include <memory>

#include "client/internal/cancellation.h"
#include "server/shard/shard.h"

namespace rowhouse::testing {

/// A shard's call under way: its deadline, and its end by cancellation.
class RunningCall {
 public:
  RunningCall(const client::internal::CallContext& context,
              server::Shard& shard)
      : callback_(
            context.cancellation == nullptr ? never_ : *context.cancellation,
            [this, &shard] {
              call_->cancelled = true;
              shard.NoteCancelled();
            }) {
    call_->deadline = context.deadline;
  }

  std::shared_ptr<server::Call> get() const { return call_; }

 private:
  std::shared_ptr<server::Call> call_ = std::make_shared<server::Call>();
  client::internal::Cancellation never_;
  client::internal::Cancellation::Callback callback_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_RUNNING_CALL_H_
