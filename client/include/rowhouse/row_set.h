#ifndef ROWHOUSE_ROW_SET_H_
#define ROWHOUSE_ROW_SET_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace rowhouse::client {

namespace internal {
struct PulledRows;
class PullTask;
class RowSplit;
}  // namespace internal

/// Row ids of a trainer's table, checked and split over its shards once, and
/// kept in the GPU's memory too where the cluster has one: calls that name rows
/// by it spend no time on the ids (`Trainer::PrepareRows`). Cheap to copy.
///
/// Thread-safe: never changes. May outlive its trainer.
class RowList {
 public:
  explicit RowList() = default;  ///< No rows. `{}` are no ids.
  explicit RowList(std::shared_ptr<const internal::RowSplit> split);

  int64_t row_count() const;  ///< Repeats counted.

  /// The library's own.
  const std::shared_ptr<const internal::RowSplit>& split() const {
    return split_;
  }

 private:
  std::shared_ptr<const internal::RowSplit> split_;
};

/// Which rows a pull returned, and as of which event: to push their gradients
/// or to land them again without sending the ids. Cheap to copy; usable with
/// the trainer that pulled it.
///
/// Thread-compatible.
class RowSet {
 public:
  RowSet() = default;  ///< No rows, of event 0.
  explicit RowSet(std::shared_ptr<const internal::PulledRows> rows);

  int64_t event() const;      ///< The event the rows reflect.
  int64_t row_count() const;  ///< Rows asked for, repeats counted.

  /// The library's own.
  const internal::PulledRows* rows() const { return rows_.get(); }

 private:
  std::shared_ptr<const internal::PulledRows> rows_;
};

/// A pull under way.
///
/// Destroying it cancels the pull and waits until nothing more is written to
/// its buffer. Move-only. Thread-compatible; `done` is thread-safe.
class PendingPull {
 public:
  PendingPull() = default;  ///< Nothing; may only be assigned to.
  explicit PendingPull(std::shared_ptr<internal::PullTask> task);
  PendingPull(PendingPull&&) noexcept = default;
  PendingPull& operator=(PendingPull&& other) noexcept;
  ~PendingPull();

  bool valid() const { return task_ != nullptr; }

  /// Whether `Wait` would return at once.
  bool done() const;

  /// Waits for the rows; the pull's own timeout bounds it. May be called again.
  /// Errors as `Trainer::Pull`.
  absl::StatusOr<RowSet> Wait();

 private:
  void CancelAndWait();

  std::shared_ptr<internal::PullTask> task_;
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_ROW_SET_H_
