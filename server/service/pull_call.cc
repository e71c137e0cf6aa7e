#include "server/service/pull_call.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/row_message.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/limits.h"
#include "server/service/pull_request.h"

namespace rowhouse::server {

// gRPC does not tell the connections of a socket apart: each call of one is a
// client.
PullCall::PullCall(ActiveCalls& calls,
                   const grpc::CallbackServerContext& context, Staging& staging)
    : active_(calls, context), staging_(staging), client_(context.peer()) {
  if (client_.starts_with("unix:")) {
    absl::StrAppend(&client_, "/", reinterpret_cast<uintptr_t>(this));
  }
}

void PullCall::Start(const TableRegistry& tables,
                     const grpc::ByteBuffer& request) {
  absl::Status status = active_.admission();
  v1::PullRowsRequest parsed;
  if (status.ok() && !wire::FromByteBuffer(request, parsed)) {
    status = NotAMessageError();
  }
  if (status.ok()) status = Open(tables, parsed);
  if (!status.ok()) Finish(wire::ToGrpc(status));
}

void PullCall::OnCancel() {
  active_.Cancel();
  if (staging_.Withdraw(this)) {
    Advance(Cause::kRead, absl::CancelledError("the caller has gone"));
  }
}

absl::Status PullCall::Open(const TableRegistry& tables,
                            const v1::PullRowsRequest& request) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Shard> shard,
                            tables.FindShard(request.table()));
  ROWHOUSE_ASSIGN_OR_RETURN(PullRequest pull_request,
                            ToPullRequest(request, *shard));
  row_bytes_ = PulledRowBytes(shard->spec());
  if (pull_request.trainer.has_value()) {
    client_ =
        absl::StrCat(request.table(), "/", pull_request.trainer->trainer_rank,
                     "/", pull_request.trainer->session);
  }
  active_.Attach(shard);
  active_.BeginWait();
  shard->OpenPull(std::move(pull_request), active_.call(),
                  [this](absl::StatusOr<std::unique_ptr<Pull>> pull) {
                    OnOpened(std::move(pull));
                  });
  return absl::OkStatus();
}

void PullCall::OnOpened(absl::StatusOr<std::unique_ptr<Pull>> pull) {
  active_.EndWait();
  if (!pull.ok()) {
    return Finish(wire::ToGrpc(active_.Outcome(pull.status())));
  }
  pull_ = *std::move(pull);
  row_count_ = pull_->row_count();
  rows_per_chunk_ = std::max(int64_t{1}, kMaxPayloadBytes / row_bytes_);
  // At least one: the first message tells the event, also when it has no rows.
  chunk_count_ = std::max(int64_t{1},
                          (row_count_ + rows_per_chunk_ - 1) / rows_per_chunk_);
  Advance(Cause::kOpened, absl::OkStatus());
}

void PullCall::OnWriteDone(bool ok) {
  message_.Clear();  // Its block may be what others, or this call, wait for.
  Advance(Cause::kWritten,
          ok ? absl::OkStatus() : absl::CancelledError("the caller has gone"));
}

// A write and a read may each complete on another thread before they return
// here, and the call may then end: so the write goes first, while the read that
// is marked as begun keeps the call, and nothing is touched after the last one.
void PullCall::Advance(Cause cause, absl::Status status) {
  Step step;
  {
    MutexLock lock(mutex_);
    if (cause == Cause::kRead) {
      reading_ = false;
      ++read_count_;
    } else if (cause == Cause::kWritten) {
      writing_ = false;
      ++write_count_;
    }
    if (status_.ok()) status_ = std::move(status);
    step = NextStep();
  }
  if (step.finish) return End();
  if (step.write_chunk.has_value()) Write(*step.write_chunk);
  if (step.read_chunk.has_value()) Read(*step.read_chunk);
}

PullCall::Step PullCall::NextStep() {
  if (active_.call()->cancelled && status_.ok()) {
    status_ = absl::CancelledError("the caller has gone");
  }
  Step step;
  if (!status_.ok()) {
    step.finish = !reading_ && !writing_;
    return step;
  }
  if (!writing_ && write_count_ < read_count_) {
    step.write_chunk = write_count_;
    writing_ = true;
  }
  // A message is free again once its chunk is written.
  if (!reading_ && read_count_ < chunk_count_ &&
      read_count_ - write_count_ < 2) {
    step.read_chunk = read_count_;
    reading_ = true;
  }
  return step;
}

void PullCall::Write(int64_t chunk) {
  const int64_t first_row = RowsBefore(chunk);
  const int64_t row_count = RowsBefore(chunk + 1) - first_row;
  v1::PullRowsResponse fields;
  fields.set_event(pull_->event());
  if (chunk == 0) {
    fields.set_handle(pull_->handle());
    fields.set_row_count(row_count_);
  }
  fields.set_dtype(ToProto(active_.shard()->spec().row_dtype));
  fields.set_first_row(first_row);
  message_ =
      row_count == 0
          ? wire::ToByteBuffer(fields)
          : wire::JoinRows(
                fields,
                std::move(blocks_[chunk % 2]).ToSlice(row_count * row_bytes_));
  if (chunk < chunk_count_ - 1) return StartWrite(&message_);
  // The place is free before the caller hears of the end.
  pull_.reset();
  StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
}

void PullCall::Read(int64_t chunk) {
  if (RowsBefore(chunk + 1) == RowsBefore(chunk)) {
    return Advance(Cause::kRead, absl::OkStatus());
  }
  staging_.Take(client_, this,
                [this, chunk](absl::StatusOr<Staging::Block> block) {
                  ReadInto(chunk, std::move(block));
                });
}

void PullCall::ReadInto(int64_t chunk, absl::StatusOr<Staging::Block> block) {
  if (!block.ok()) return Advance(Cause::kRead, std::move(block).status());
  void* const rows = block->data();
  blocks_[chunk % 2] = *std::move(block);
  // Held here: this call may end, and let go of both, before `Read` returns.
  const std::shared_ptr<Shard> shard = active_.shard();
  const std::shared_ptr<Pull> pull = pull_;
  pull->Read(RowsBefore(chunk + 1) - RowsBefore(chunk), rows,
             [this](absl::Status status) {
               Advance(Cause::kRead, std::move(status));
             });
}

void PullCall::End() {
  pull_.reset();
  for (Staging::Block& block : blocks_) block = {};
  absl::Status status;
  {
    MutexLock lock(mutex_);
    status = std::move(status_);
  }
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

int64_t PullCall::RowsBefore(int64_t chunk) const {
  return std::min(row_count_, chunk * rows_per_chunk_);
}

}  // namespace rowhouse::server
