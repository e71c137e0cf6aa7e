#include "client/internal/table_mapping.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/transport_faults.h"
#include "proto/wire/host_identity.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

// What a call waits at most for the memory to be mapped.
constexpr absl::Duration kPatience = absl::Seconds(1);

kernels::SharedMemory MemoryOf(const v1::SharedMemory& memory) {
  return {memory.handle(), memory.offset_bytes(), memory.size_bytes()};
}

absl::StatusOr<kernels::DType> ToKernel(v1::DataType type) {
  ROWHOUSE_ASSIGN_OR_RETURN(const DType dtype, FromProto(type));
  switch (dtype) {
    case DType::kBf16:
      return kernels::DType::kBf16;
    case DType::kFp32:
      return kernels::DType::kFp32;
    case DType::kFp16:
      return kernels::DType::kFp16;
  }
  return absl::InvalidArgumentError("an element type of no table");
}

absl::StatusOr<SharedShard> ShardOf(const v1::MapTableResponse& answer) {
  SharedShard shared;
  shared.weights = MemoryOf(answer.weights());
  shared.epoch = MemoryOf(answer.epoch());
  if (answer.has_inbox()) shared.inbox = MemoryOf(answer.inbox());
  ROWHOUSE_ASSIGN_OR_RETURN(shared.dtype, ToKernel(answer.dtype()));
  shared.dim = answer.dim();
  shared.first_row_id = answer.first_row_id();
  shared.row_count = answer.row_count();
  return shared;
}

}  // namespace

TableMapping::Use::~Use() {
  if (mapping_ != nullptr) mapping_->Leave();
}

TableMapping::TableMapping(v1::TransportService::Stub& stub, std::string table,
                           MappingUse use, MapBackend backend)
    : stub_(stub),
      table_(std::move(table)),
      use_(use),
      backend_(std::move(backend)),
      thread_([this] { Run(); }) {}

TableMapping::~TableMapping() {
  Break();
  thread_.join();
}

absl::StatusOr<TableMapping::Use> TableMapping::Enter(
    const CallContext& context) {
  const WaitCancellation cancellation(context, mutex_, changed_);
  const absl::Time until = std::min(context.deadline, absl::Now() + kPatience);
  MutexLock lock(mutex_);
  while (state_ == State::kOpening && !cancellation.cancelled() &&
         absl::Now() < until) {
    changed_.WaitUntil(mutex_, absl::ToChronoTime(until));
  }
  switch (state_) {
    case State::kOpening:
      return absl::UnavailableError("the table is not yet mapped");
    case State::kEnded:
      return ended_;
    case State::kMapped:
      break;
  }
  ++uses_;
  return Use(*this, *rows_, number_);
}

void TableMapping::Leave() {
  MutexLock lock(mutex_);
  --uses_;
  changed_.SignalAll();
}

bool TableMapping::MayRepeat() const {
  MutexLock lock(mutex_);
  return state_ == State::kEnded && may_repeat_;
}

std::optional<TableMapping::Window> TableMapping::window() const {
  MutexLock lock(mutex_);
  return window_;
}

void TableMapping::OpenWindow(const Window& window) {
  MutexLock lock(mutex_);
  if (!window_.has_value() || window_->epoch < window.epoch) window_ = window;
}

void TableMapping::CloseWindow(int64_t epoch) {
  MutexLock lock(mutex_);
  if (window_.has_value() && window_->epoch == epoch) window_.reset();
}

void TableMapping::Run() {
  v1::MapTableRequest request;
  request.set_table(ResourceName(table_));
  const wire::HostIdentity here = wire::ThisHost();
  request.mutable_host()->set_boot_id(here.boot_id);
  request.mutable_host()->set_user_id(here.user_id);
  request.set_inbox(use_ == MappingUse::kPush);
  request.set_head_inbox(use_ == MappingUse::kHead);
  const auto stream = stub_.MapTable(&context_);
  stream->Write(request);
  v1::MapTableResponse message;
  absl::Status mapped = absl::OkStatus();
  bool answered = false;
  bool ended = false;
  while (!ended && stream->Read(&message)) {
    if (!answered) mapped = MapAnswer(message);
    answered = true;
    ended = message.unmap() || !mapped.ok();
  }
  // Not after the server has the memory back.
  if (answered) Unmap(mapped, /*may_repeat=*/mapped.ok());
  stream->WritesDone();
  while (stream->Read(&message)) {
  }
  const absl::Status status = wire::FromGrpc(stream->Finish());
  if (!answered) Unmap(status, !IsRefusal(status));
}

absl::Status TableMapping::MapAnswer(const v1::MapTableResponse& answer) {
  ROWHOUSE_ASSIGN_OR_RETURN(const SharedShard shared, ShardOf(answer));
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<kernels::Backend> backend,
                            backend_(answer.backend()));
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<MappedRows> rows,
                            MappedRows::Map(std::move(backend), shared));
  MutexLock lock(mutex_);
  rows_ = std::move(rows);
  number_ = answer.mapping();
  state_ = State::kMapped;
  changed_.SignalAll();
  return absl::OkStatus();
}

void TableMapping::Unmap(absl::Status why, bool may_repeat) {
  MutexLock lock(mutex_);
  state_ = State::kEnded;
  ended_ = why.ok() ? absl::UnavailableError("the mapping has ended")
                    : std::move(why);
  may_repeat_ = may_repeat;
  changed_.SignalAll();
  while (uses_ > 0) changed_.Wait(mutex_);
  rows_.reset();
}

}  // namespace rowhouse::client::internal
