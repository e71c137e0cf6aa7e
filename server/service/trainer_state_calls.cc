#include "server/service/trainer_state_calls.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/checkpoint_convert.h"
#include "server/service/field_error.h"
#include "server/service/limits.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::Status CheckRank(int32_t trainer_rank) {
  if (trainer_rank >= 0) return absl::OkStatus();
  return FieldError(reasons::kBadRank, "trainer_rank", int64_t{trainer_rank},
                    "at least 0");
}

absl::Status CheckSize(int64_t size_bytes) {
  if (size_bytes >= 0 && size_bytes <= kMaxTrainerStateBytes) {
    return absl::OkStatus();
  }
  return FieldError(reasons::kBadShape, "size_bytes", size_bytes,
                    absl::StrCat("0 to ", kMaxTrainerStateBytes));
}

}  // namespace

void PutTrainerStateCall::Start() {
  absl::Status status = active_.admission();
  if (status.ok()) status = CheckOffered(checkpoints_);
  if (!status.ok()) return End(std::move(status));
  StartRead(&message_);
}

void PutTrainerStateCall::OnReadDone(bool ok) {
  absl::Status status = ok ? OnMessage() : OnEnd();
  if (!status.ok()) return End(std::move(status));
  if (ok) StartRead(&message_);
}

absl::Status PutTrainerStateCall::OnMessage() {
  if (checkpoint_.empty()) {
    ROWHOUSE_ASSIGN_OR_RETURN(checkpoint_,
                              ToCheckpoint("name", message_.name()));
    ROWHOUSE_RETURN_IF_ERROR(CheckRank(message_.trainer_rank()));
    trainer_rank_ = message_.trainer_rank();
    ROWHOUSE_RETURN_IF_ERROR(CheckSize(message_.size_bytes()));
    size_bytes_ = message_.size_bytes();
  } else if (!message_.name().empty()) {
    return FieldError(reasons::kMalformed, "name",
                      std::string_view("set in a later message"),
                      "set in the first one only");
  }
  const auto bytes = static_cast<int64_t>(message_.state().size());
  if (bytes > kMaxPayloadBytes) {
    return FieldError(reasons::kBadShape, "bytes of state", bytes,
                      absl::StrCat("at most ", kMaxPayloadBytes));
  }
  const auto sum = static_cast<int64_t>(state_.size()) + bytes;
  if (sum > size_bytes_) {
    return FieldError(reasons::kBadShape, "bytes of all messages", sum,
                      absl::StrCat("size_bytes, ", size_bytes_));
  }
  state_.append(message_.state());
  return absl::OkStatus();
}

absl::Status PutTrainerStateCall::OnEnd() {
  if (active_.call()->cancelled) {
    return absl::CancelledError("the caller has gone");
  }
  if (checkpoint_.empty()) {
    return FieldError(reasons::kMalformed, "the stream",
                      std::string_view("empty"), "at least one message");
  }
  // A caller that goes may look like the end of its stream.
  const auto sum = static_cast<int64_t>(state_.size());
  if (sum != size_bytes_) {
    return FieldError(reasons::kBadShape, "bytes of all messages", sum,
                      absl::StrCat("size_bytes, ", size_bytes_));
  }
  checkpoints_->Post(
      [this, under_way = checkpoints_->NoteUnderWay(checkpoint_)]() mutable {
        absl::Status written = checkpoints_->directory().WriteTrainerState(
            checkpoint_, trainer_rank_, state_);
        under_way.reset();
        if (written.ok()) {
          response_.set_size_bytes(static_cast<int64_t>(state_.size()));
        }
        End(std::move(written));
      });
  return absl::OkStatus();
}

void PutTrainerStateCall::End(absl::Status status) {
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

void GetTrainerStateCall::Start(Checkpoints* checkpoints,
                                const v1::GetTrainerStateRequest& request) {
  absl::Status status = active_.admission();
  if (status.ok()) status = Read(checkpoints, request);
  if (!status.ok()) End(std::move(status));
}

absl::Status GetTrainerStateCall::Read(
    Checkpoints* checkpoints, const v1::GetTrainerStateRequest& request) {
  ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints));
  ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                            ToCheckpoint("name", request.name()));
  ROWHOUSE_RETURN_IF_ERROR(CheckRank(request.trainer_rank()));
  checkpoints->Post(
      [this, checkpoints, checkpoint, trainer_rank = request.trainer_rank()] {
        absl::StatusOr<std::string> state =
            checkpoints->directory().ReadTrainerState(checkpoint, trainer_rank);
        if (!state.ok()) return End(std::move(state).status());
        state_ = *std::move(state);
        WriteNext();
      });
  return absl::OkStatus();
}

void GetTrainerStateCall::WriteNext() {
  const size_t count =
      std::min(state_.size() - next_, static_cast<size_t>(kMaxPayloadBytes));
  message_.set_state(state_.substr(next_, count));
  next_ += count;
  StartWrite(&message_);
}

void GetTrainerStateCall::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the caller has gone"));
  if (next_ == state_.size()) return End(absl::OkStatus());
  WriteNext();
}

void GetTrainerStateCall::End(absl::Status status) {
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

}  // namespace rowhouse::server
