#include "server/transport/map_call.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/host_identity.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/transport/inbox.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::Status Refusal(std::string_view reason, std::string_view what,
                     const std::string& found, const std::string& wanted) {
  return wire::Error(absl::StatusCode::kFailedPrecondition, reason,
                     absl::StrCat("the client's ", std::string(what), " is ",
                                  found, "; the server's is ", wanted),
                     {{"found", found}, {"wanted", wanted}});
}

// The system itself keeps out whoever claims what is not true.
absl::Status CheckHost(const v1::MapTableRequest& request) {
  if (!request.has_host()) return MissingError("host");
  const wire::HostIdentity here = wire::ThisHost();
  if (request.host().boot_id() != here.boot_id) {
    return Refusal(reasons::kOtherHost, "host.boot_id",
                   Quoted(request.host().boot_id()), Quoted(here.boot_id));
  }
  if (request.host().user_id() != here.user_id) {
    return Refusal(reasons::kOtherUser, "host.user_id",
                   absl::StrCat(request.host().user_id()),
                   absl::StrCat(here.user_id));
  }
  return absl::OkStatus();
}

void Fill(const kernels::SharedMemory& memory, v1::SharedMemory& message) {
  message.set_handle(memory.handle);
  message.set_offset_bytes(memory.offset_bytes);
  message.set_size_bytes(memory.size_bytes);
}

}  // namespace

void MapCall::Start() {
  absl::Status status = active_.admission();
  if (!status.ok()) return End(std::move(status));
  StartRead(&request_);
}

void MapCall::OnReadDone(bool ok) {
  if (mapped_) {
    // Nothing more may come: a second message ends the call like its end.
    return OnClientEnd();
  }
  const absl::Status status =
      ok ? Open()
         : FieldError(reasons::kMalformed, "the stream",
                      std::string_view("empty"), "a request");
  if (!status.ok()) End(status);
}

absl::Status MapCall::Open() {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Shard> shard,
                            tables_.FindShard(request_.table()));
  ROWHOUSE_RETURN_IF_ERROR(CheckHost(request_));
  if (request_.inbox() && request_.head_inbox()) {
    return FieldError(reasons::kMalformed, "inbox", std::string_view("set"),
                      "not set together with head_inbox");
  }
  active_.Attach(shard);
  shard->ShareRows(active_.call(), [this](absl::StatusOr<SharedRows> shared) {
    OnShared(std::move(shared));
  });
  return absl::OkStatus();
}

void MapCall::OnShared(absl::StatusOr<SharedRows> shared) {
  absl::Status status = shared.status();
  if (status.ok()) status = Answer(*shared);
  if (!status.ok()) return End(std::move(status));
  StartWrite(&response_);
}

absl::Status MapCall::Answer(const SharedRows& shared) {
  const ShardSpec& spec = active_.shard()->spec();
  auto mapping = std::make_shared<Mapping>();
  mapping->shard = active_.shard();
  ROWHOUSE_RETURN_IF_ERROR(MakeInbox(*mapping));
  Fill(shared.weights, *response_.mutable_weights());
  Fill(shared.epoch, *response_.mutable_epoch());
  if (mapping->inbox.size_bytes() > 0) {
    ROWHOUSE_ASSIGN_OR_RETURN(const kernels::SharedMemory inbox,
                              tables_.backend().Share(mapping->inbox));
    Fill(inbox, *response_.mutable_inbox());
  }
  response_.set_backend(options_.backend);
  response_.set_dtype(ToProto(spec.row_dtype));
  response_.set_dim(spec.dim);
  response_.set_first_row_id(spec.placement.first_row(spec.shard_index));
  response_.set_row_count(spec.placement.end_row(spec.shard_index) -
                          response_.first_row_id());
  number_ = mappings_.Add(std::move(mapping));
  response_.set_mapping(number_);
  return absl::OkStatus();
}

// Without room for an inbox there is none: pushes take the other path.
absl::Status MapCall::MakeInbox(Mapping& mapping) {
  const ShardSpec& spec = active_.shard()->spec();
  int64_t size = 0;
  if (request_.inbox()) size = InboxBytes(spec);
  if (request_.head_inbox()) size = HeadInboxBytes(spec);
  size = std::min(size, options_.max_inbox_bytes);
  if (size == 0) return absl::OkStatus();
  const std::string what = absl::StrCat("an inbox of ", request_.table());
  absl::StatusOr<std::shared_ptr<void>> reserved =
      tables_.ReserveAside(what, size + kStagingBytes);
  if (!reserved.ok()) {
    spdlog::warn("{}: {}", what, std::string(reserved.status().message()));
    return absl::OkStatus();
  }
  mapping.reservation = *std::move(reserved);
  ROWHOUSE_ASSIGN_OR_RETURN(mapping.inbox,
                            tables_.backend().AllocateShared(size));
  ROWHOUSE_ASSIGN_OR_RETURN(mapping.staging,
                            tables_.backend().Allocate(kStagingBytes));
  return absl::OkStatus();
}

void MapCall::OnWriteDone(bool ok) {
  if (mapped_) {  // The client was asked to unmap, or has gone.
    {
      MutexLock lock(mutex_);
      writing_ = false;
    }
    return EndWhenAllHave();
  }
  if (!ok) return End(absl::CancelledError("the caller has gone"));
  mapped_ = true;
  // A drain ends the wait for the shard's end.
  active_.BeginWait();
  // Held here: with both ends this call may go before `AwaitEnd` returns.
  const std::shared_ptr<Shard> shard = active_.shard();
  const std::shared_ptr<Call> call = active_.call();
  StartRead(&request_);
  shard->AwaitEnd(call,
                  [this](const absl::Status& reason) { OnShardEnd(reason); });
}

void MapCall::OnShardEnd(const absl::Status& reason) {
  {
    MutexLock lock(mutex_);
    shard_end_ = reason;
    if (!client_ended_) {
      writing_ = true;
      response_.Clear();
      response_.set_unmap(true);
      StartWrite(&response_);
      return;
    }
  }
  EndWhenAllHave();
}

void MapCall::OnClientEnd() {
  const std::shared_ptr<Shard> shard = active_.shard();
  bool shard_ended = false;
  {
    MutexLock lock(mutex_);
    client_ended_ = true;
    shard_ended = shard_end_.has_value();
    // Ends the wait, which ends the call.
    if (!shard_ended) active_.call()->cancelled = true;
  }
  if (shard_ended) return EndWhenAllHave();
  shard->NoteCancelled();
}

void MapCall::EndWhenAllHave() {
  absl::Status reason;
  {
    MutexLock lock(mutex_);
    if (!shard_end_.has_value() || !client_ended_ || writing_) return;
    reason = *std::exchange(shard_end_, std::nullopt);  // Ends once.
  }
  End(std::move(reason));
}

void MapCall::End(absl::Status status) {
  if (number_ != 0) mappings_.Remove(number_);
  active_.EndWait();
  // A client that has unmapped on its own has done well.
  if (mapped_ && absl::IsCancelled(status)) status = absl::OkStatus();
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

}  // namespace rowhouse::server
