#include "rowhouse/trainer.h"

#include <memory>
#include <utility>

#include "client/internal/pull_task.h"
#include "client/internal/row_split.h"
#include "client/internal/trainer_core.h"
#include "proto/wire/error.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client {
namespace {

using Split = absl::StatusOr<std::shared_ptr<const internal::RowSplit>>;

Split SplitOf(internal::TrainerCore& core, const RowList& rows) {
  if (rows.split() == nullptr) return core.Split({});
  return rows.split();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Join(
    const Cluster& cluster, std::string_view table, int32_t rank,
    const JoinOptions& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<internal::TrainerCore> core,
                            internal::TrainerCore::Join(cluster.core(), table,
                                                        rank, options.timeout));
  return std::make_unique<Trainer>(std::move(core));
}

Trainer::Trainer(std::shared_ptr<internal::TrainerCore> core)
    : core_(std::move(core)) {}

Trainer::~Trainer() { core_->Shutdown(); }

const TableInfo& Trainer::table() const { return core_->table(); }
int32_t Trainer::rank() const { return core_->session().rank; }
int64_t Trainer::session() const { return core_->session().session; }
int64_t Trainer::next_event() const { return core_->next_event(); }
int64_t Trainer::next_commit() const { return core_->next_commit(); }

absl::StatusOr<RowList> Trainer::PrepareRows(std::span<const int64_t> row_ids) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<const internal::RowSplit> split,
                            core_->Split(row_ids, /*keep=*/true));
  return RowList(std::move(split));
}

PendingPull Trainer::PullAsync(std::span<const int64_t> row_ids,
                               std::span<std::byte> out,
                               const PullOptions& options) {
  auto task = std::make_shared<internal::PullTask>(core_);
  task->Start(core_->Split(row_ids), out, options);
  return PendingPull(std::move(task));
}

PendingPull Trainer::PullAsync(const RowList& rows, std::span<std::byte> out,
                               const PullOptions& options) {
  auto task = std::make_shared<internal::PullTask>(core_);
  task->Start(SplitOf(*core_, rows), out, options);
  return PendingPull(std::move(task));
}

absl::StatusOr<RowSet> Trainer::Pull(std::span<const int64_t> row_ids,
                                     std::span<std::byte> out,
                                     const PullOptions& options) {
  auto task = std::make_shared<internal::PullTask>(core_);
  // No other thread: it answers sooner.
  task->Run(core_->Split(row_ids), out, options);
  return PendingPull(std::move(task)).Wait();
}

absl::StatusOr<RowSet> Trainer::Pull(const RowList& rows,
                                     std::span<std::byte> out,
                                     const PullOptions& options) {
  auto task = std::make_shared<internal::PullTask>(core_);
  task->Run(SplitOf(*core_, rows), out, options);
  return PendingPull(std::move(task)).Wait();
}

absl::Status Trainer::Repull(const RowSet& rows, std::span<std::byte> out,
                             const CallOptions& options) {
  if (rows.rows() == nullptr)
    return internal::CheckBufferSize(out.size(), 0, 1);
  return core_->Repull(*rows.rows(), out, options);
}

absl::StatusOr<PushResult> Trainer::Push(int64_t event, const RowSet& rows,
                                         std::span<const std::byte> gradients,
                                         const PushOptions& options) {
  if (rows.rows() == nullptr) {
    return Push(event, std::span<const int64_t>(), gradients, options);
  }
  return core_->Push(event, *rows.rows(), gradients, options);
}

absl::StatusOr<PushResult> Trainer::Push(int64_t event,
                                         std::span<const int64_t> row_ids,
                                         std::span<const std::byte> gradients,
                                         const PushOptions& options) {
  internal::PulledRows rows;
  ROWHOUSE_ASSIGN_OR_RETURN(rows.split, core_->Split(row_ids));
  return core_->Push(event, rows, gradients, options);
}

absl::StatusOr<PushResult> Trainer::Push(int64_t event, const RowList& rows,
                                         std::span<const std::byte> gradients,
                                         const PushOptions& options) {
  internal::PulledRows named;
  ROWHOUSE_ASSIGN_OR_RETURN(named.split, SplitOf(*core_, rows));
  return core_->Push(event, named, gradients, options);
}

absl::Status Trainer::Seal(int64_t event, const CallOptions& options) {
  return core_->Seal(event, options);
}

absl::Status Trainer::Discard(int64_t event, const CallOptions& options) {
  return core_->Discard(event, options);
}

absl::Status Trainer::Commit(int64_t event, CommitDecision decision) {
  return core_->Commit(event, std::move(decision));
}

absl::Status Trainer::SealAndCommit(int64_t event, CommitDecision decision,
                                    const CallOptions& options) {
  if (rank() != 0) return Commit(event, std::move(decision));
  ROWHOUSE_RETURN_IF_ERROR(core_->Seal(event, options));
  // Decided already by a call whose answer was a fault of the seal.
  if (event < next_commit()) return absl::OkStatus();
  return core_->Commit(event, std::move(decision));
}

absl::Status Trainer::WaitForEvent(int64_t event, const CallOptions& options) {
  return core_->WaitForEvent(event, options);
}

}  // namespace rowhouse::client
