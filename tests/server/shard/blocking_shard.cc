#include "tests/server/shard/blocking_shard.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::testing {

using server::EventCommit;
using server::PartLanding;
using server::PullRequest;
using server::TrainerSession;

absl::StatusOr<PulledRows> BlockingShard::Pull(
    const std::vector<int64_t>& row_ids, PullRequest request,
    int64_t rows_per_read) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<server::Pull> pull,
                            OpenPull(row_ids, std::move(request)));
  PulledRows pulled{pull->event(), pull->handle(), {}};
  for (int64_t left = pull->row_count(); left > 0;) {
    const int64_t count = std::min(left, rows_per_read);
    ROWHOUSE_ASSIGN_OR_RETURN(const std::string rows, Read(*pull, count));
    pulled.rows += rows;
    left -= count;
  }
  return pulled;
}

absl::StatusOr<std::unique_ptr<server::Pull>> BlockingShard::OpenPull(
    const std::vector<int64_t>& row_ids, PullRequest request) {
  return StartPull(row_ids, std::move(request)).Wait();
}

PendingCall<std::unique_ptr<server::Pull>> BlockingShard::StartPull(
    const std::vector<int64_t>& row_ids, PullRequest request,
    std::shared_ptr<server::Call> call) {
  PendingCall<std::unique_ptr<server::Pull>> pending;
  absl::StatusOr<std::vector<int64_t>> slots = shard_->ResolveRowIds(row_ids);
  if (!slots.ok()) {
    pending.Callback()(std::move(slots).status());
    return pending;
  }
  request.slots = *std::move(slots);
  shard_->OpenPull(std::move(request), std::move(call), pending.Callback());
  return pending;
}

absl::StatusOr<std::string> BlockingShard::Read(server::Pull& pull,
                                                int64_t row_count) {
  std::string rows(static_cast<size_t>(row_count * row_bytes()), '\0');
  Pending<absl::Status> pending;
  pull.Read(row_count, rows.data(), pending.Callback());
  ROWHOUSE_RETURN_IF_ERROR(pending.Wait());
  return rows;
}

absl::StatusOr<server::ShardDigest> BlockingShard::Digest(
    std::optional<int64_t> exact_event) {
  PendingCall<server::ShardDigest> pending;
  shard_->Digest(exact_event, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<server::EventState> BlockingShard::GetEventState() {
  return StartGetEventState(std::nullopt, std::nullopt).Wait();
}

PendingCall<server::EventState> BlockingShard::StartGetEventState(
    std::optional<int64_t> wait_sealed_event,
    std::optional<int64_t> wait_applied_event,
    std::shared_ptr<server::Call> call) {
  PendingCall<server::EventState> pending;
  server::EventWait wait;
  wait.sealed_event = wait_sealed_event;
  wait.applied_event = wait_applied_event;
  shard_->GetEventState(wait, std::move(call), pending.Callback());
  return pending;
}

absl::StatusOr<kernels::GradientStatistics> BlockingShard::GetEventStatistics(
    int64_t event) {
  PendingCall<kernels::GradientStatistics> pending;
  shard_->GetEventStatistics(event, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<server::ShardInfo> BlockingShard::GetInfo() {
  PendingCall<server::ShardInfo> pending;
  shard_->GetInfo(NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<server::PartReceipt> BlockingShard::Push(
    const PartToPush& part) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<PartLanding> landing, Begin(part));
  ROWHOUSE_RETURN_IF_ERROR(Land(*landing, part));
  return Finish(std::move(landing), part);
}

absl::StatusOr<std::unique_ptr<PartLanding>> BlockingShard::Begin(
    const PartToPush& part) {
  PendingCall<std::unique_ptr<PartLanding>> pending;
  const auto row_count =
      static_cast<int64_t>(part.rows.size()) / gradient_bytes();
  shard_->BeginPart({part.trainer, part.event, part.part,
                     part.row_count.value_or(row_count), part.handles},
                    NewCall(), pending.Callback());
  return pending.Wait();
}

absl::Status BlockingShard::Land(PartLanding& landing, const PartToPush& part) {
  const auto size_bytes = static_cast<int64_t>(part.rows.size());
  const int64_t step = part.rows_per_message * gradient_bytes();
  for (int64_t at = 0; at < size_bytes; at += step) {
    const std::string_view rows(
        part.rows.data() + at,
        static_cast<size_t>(std::min(step, size_bytes - at)));
    const int64_t first_row = at / gradient_bytes();
    std::span<const int64_t> row_ids(part.row_ids);
    if (!row_ids.empty()) {
      const size_t first =
          std::min(static_cast<size_t>(first_row), row_ids.size());
      const size_t count = rows.size() / static_cast<size_t>(gradient_bytes());
      row_ids = row_ids.subspan(first, std::min(count, row_ids.size() - first));
    }
    ROWHOUSE_RETURN_IF_ERROR(landing.Append(first_row, row_ids, rows));
  }
  return absl::OkStatus();
}

absl::StatusOr<server::PartReceipt> BlockingShard::Finish(
    std::unique_ptr<PartLanding> landing, const PartToPush& part,
    std::shared_ptr<server::Call> call) {
  PendingCall<server::PartReceipt> pending;
  shard_->FinishPart(std::move(landing), part.seal_part_count, part.commit,
                     std::move(call), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<int64_t> BlockingShard::Seal(TrainerSession trainer,
                                            int64_t event, int32_t part_count) {
  PendingCall<int64_t> pending;
  shard_->Seal(trainer, event, part_count, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<int32_t> BlockingShard::Discard(TrainerSession trainer,
                                               int64_t event) {
  PendingCall<int32_t> pending;
  shard_->Discard(trainer, event, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<bool> BlockingShard::Commit(TrainerSession trainer,
                                           int64_t event,
                                           const EventCommit& commit) {
  PendingCall<bool> pending;
  shard_->Commit(trainer, event, commit, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<int64_t> BlockingShard::OpenSession(TrainerSession trainer,
                                                   int64_t owner) {
  PendingCall<int64_t> pending;
  shard_->OpenSession(trainer, owner, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<int64_t> BlockingShard::KeepAlive(TrainerSession trainer) {
  PendingCall<int64_t> pending;
  shard_->KeepAlive(trainer, NewCall(), pending.Callback());
  return pending.Wait();
}

absl::StatusOr<int64_t> BlockingShard::Import(int64_t first_row_id,
                                              int64_t row_count,
                                              std::string rows) {
  PendingCall<int64_t> pending;
  shard_->Import(first_row_id, row_count, std::move(rows), NewCall(),
                 pending.Callback());
  return pending.Wait();
}

absl::StatusOr<server::ShardInfo> BlockingShard::SetTrainerCount(
    int32_t trainer_count, int64_t from_event) {
  PendingCall<server::ShardInfo> pending;
  shard_->SetTrainerCount(trainer_count, from_event, NewCall(),
                          pending.Callback());
  return pending.Wait();
}

absl::StatusOr<server::ShardInfo> BlockingShard::Reset() {
  PendingCall<server::ShardInfo> pending;
  shard_->Reset(NewCall(), pending.Callback());
  return pending.Wait();
}

}  // namespace rowhouse::testing
