#include "rowhouse/row_set.h"

#include <utility>

#include "client/internal/pull_task.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client {

RowSet::RowSet(std::shared_ptr<const internal::PulledRows> rows)
    : rows_(std::move(rows)) {}

int64_t RowSet::event() const { return rows_ == nullptr ? 0 : rows_->event; }

int64_t RowSet::row_count() const {
  return rows_ == nullptr ? 0 : rows_->split->row_count();
}

RowList::RowList(std::shared_ptr<const internal::RowSplit> split)
    : split_(std::move(split)) {}

int64_t RowList::row_count() const {
  return split_ == nullptr ? 0 : split_->row_count();
}

PendingPull::PendingPull(std::shared_ptr<internal::PullTask> task)
    : task_(std::move(task)) {}

PendingPull& PendingPull::operator=(PendingPull&& other) noexcept {
  if (this != &other) {
    CancelAndWait();
    task_ = std::move(other.task_);
  }
  return *this;
}

PendingPull::~PendingPull() { CancelAndWait(); }

void PendingPull::CancelAndWait() {
  if (task_ == nullptr) return;
  task_->Cancel();
  task_->Wait().IgnoreError();
  task_.reset();
}

bool PendingPull::done() const { return task_->done(); }

absl::StatusOr<RowSet> PendingPull::Wait() {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<const internal::PulledRows> rows,
                            task_->Wait());
  return RowSet(std::move(rows));
}

}  // namespace rowhouse::client
