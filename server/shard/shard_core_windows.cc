// The rows as others of the host read them: on their own.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_core.h"

namespace rowhouse::server {
namespace {

absl::Status NotOffered(const ShardSpec& spec, const char* why) {
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kNotOffered,
                     absl::StrCat(spec.table, " cannot be mapped: ", why),
                     {{"table", spec.table}});
}

}  // namespace

absl::StatusOr<SharedRows> ShardCore::ShareRows() const {
  if (epoch_ == nullptr) {
    return NotOffered(spec_, "the server does not offer the one-sided path");
  }
  if (store_->weights().size_bytes() == 0) {
    return NotOffered(spec_, "the shard has no rows");
  }
  SharedRows shared;
  ROWHOUSE_ASSIGN_OR_RETURN(shared.weights, backend_.Share(store_->weights()));
  ROWHOUSE_ASSIGN_OR_RETURN(shared.epoch, backend_.Share(epoch_->word()));
  return shared;
}

void ShardCore::OpenWindow(const WindowRequest& request,
                           std::shared_ptr<Call> call, Done<ReadWindow> done) {
  absl::Status valid =
      epoch_ == nullptr
          ? NotOffered(spec_, "the server does not offer the one-sided path")
          : CheckReadEvent(request.min_event, request.exact_event);
  if (valid.ok() && request.trainer.has_value()) {
    valid = sessions_.Check(*request.trainer);
  }
  if (!valid.ok()) return done(std::move(valid));
  ParkedCall wait = ReadWait(request.min_event, request.exact_event,
                             request.trainer, std::move(call));
  wait.resume = [this, exact_event = request.exact_event,
                 done = std::move(done)](absl::Status waited) mutable {
    if (waited.ok()) waited = CheckReadEvent(std::nullopt, exact_event);
    if (!waited.ok()) return done(std::move(waited));
    done(ReadWindow{events_.applied(), epoch_->value()});
  };
  WaitFor(std::move(wait));
}

void ShardCore::AwaitEnd(std::shared_ptr<Call> call,
                         absl::AnyInvocable<void(absl::Status)> done) {
  ParkedCall wait;
  wait.applied_event = std::numeric_limits<int64_t>::max();  // Never.
  wait.until = absl::InfiniteFuture();
  wait.call = std::move(call);
  wait.resume = std::move(done);
  WaitFor(std::move(wait));
}

absl::Status ShardCore::BeginWrite() {
  return epoch_ == nullptr ? absl::OkStatus() : epoch_->Advance();
}

absl::Status ShardCore::CloseWindows() {
  if (epoch_ == nullptr) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(epoch_->Advance());
  return backend_.Synchronize();
}

}  // namespace rowhouse::server
