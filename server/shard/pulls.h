#ifndef ROWHOUSE_SERVER_SHARD_PULLS_H_
#define ROWHOUSE_SERVER_SHARD_PULLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/shard/handles.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// The pulls that hold a place: those that wait for their event, and those
/// that are read. Rows are gathered as they are read; what is left is saved
/// before the table is written, so a pull shows one event throughout.
///
/// Host memory counts as the backend's: so it is on the CPU.
///
/// Thread-compatible.
class Pulls {
 public:
  /// Open pulls of one session, waiting ones too.
  static constexpr int kMostPerSession = 2;

  Pulls(kernels::Backend& backend, int32_t max_anonymous_count)
      : backend_(&backend), max_anonymous_count_(max_anonymous_count) {}

  int32_t count() const { return static_cast<int32_t>(pulls_.size()); }

  /// Takes a place and returns its number.
  ///
  /// Errors:
  ///   kResourceExhausted  PULLS_OPEN, with a retry delay.
  absl::StatusOr<int64_t> Add(const std::optional<TrainerSession>& trainer,
                              SharedSlots slots, bool training);

  /// From now on the pull shows the table as it is.
  void Open(int64_t pull) { pulls_.at(pull).open = true; }

  /// Frees what the pulls of a rank's sessions before `newest` hold: they show
  /// nothing any more, and keep their places until their callers go.
  void DropOlder(const TrainerSession& newest);

  /// Gives the place back. A pull that is not there is left alone.
  void Remove(int64_t pull) { pulls_.erase(pull); }

  const SharedSlots& slots(int64_t pull) const { return pulls_.at(pull).slots; }
  const std::optional<TrainerSession>& trainer(int64_t pull) const {
    return pulls_.at(pull).trainer;
  }

  /// Copies the next `row_count` rows to `out`, the host's or the backend's.
  ///
  /// Errors: the backend's.
  absl::Status Read(int64_t pull, const kernels::RowTable& table,
                    int64_t row_count, void* out);

  /// Whether the pull has just been read to its end and its rows are to be
  /// brought current: a training pull of distinct, ascending slots. Once.
  bool TakeBringCurrent(int64_t pull);

  /// Saves what is left of every open pull, before `table` is written. Where
  /// memory is short the pull's next read fails, and nothing else.
  void Save(const kernels::RowTable& table);

 private:
  struct Place {
    std::optional<TrainerSession> trainer;
    SharedSlots slots;
    bool training = false;
    bool open = false;
    int64_t next = 0;  // The next row to read.
    bool saved = false;
    int64_t first_saved = 0;  // The row that `memory` begins with.
    kernels::Buffer memory;
    absl::Status fault;  // Of saving.
  };

  absl::Status SaveRest(const kernels::RowTable& table, Place& place);
  absl::Status Gather(const kernels::RowTable& table, const Place& place,
                      int64_t row_count, void* out);

  kernels::Backend* backend_;
  int32_t max_anonymous_count_;
  int64_t last_pull_ = 0;
  std::map<int64_t, Place> pulls_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_PULLS_H_
