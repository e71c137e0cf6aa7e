// How pulls are split over shards and calls, and merged.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/router.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

// Rounds in which a pull may find that the table has moved on under it.
constexpr int kMaxRounds = 100;

bool IsPast(const absl::Status& status) {
  return wire::ReasonOf(status) == wire::reasons::kEventPast;
}

absl::Status MovedOn() {
  return wire::Error(absl::StatusCode::kDeadlineExceeded,
                     wire::reasons::kEventsMovedOn,
                     "events were applied faster than the rows of one could be "
                     "read");
}

// Checks that messages make up one answer of `count` rows.
class AnswerCheck {
 public:
  AnswerCheck(int64_t count, int64_t row_bytes)
      : count_(count), row_bytes_(row_bytes) {}

  // Returns the rows of the next message.
  absl::StatusOr<int64_t> Next(int64_t first_row,
                               const kernels::HostPieces& rows) {
    const int64_t size = rows.size_bytes();
    const int64_t found = size / row_bytes_;
    if (size % row_bytes_ != 0 || first_row != landed_ ||
        found > count_ - landed_) {
      return absl::InternalError(
          absl::StrCat("a message of ", size, " bytes for row ", first_row,
                       ", wanted whole rows of ", row_bytes_, " bytes for row ",
                       landed_, " of ", count_));
    }
    landed_ += found;
    return found;
  }

  absl::Status Finish() const {
    if (landed_ == count_) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("an answer of ", landed_, " rows, wanted ", count_));
  }

 private:
  int64_t count_;
  int64_t row_bytes_;
  int64_t landed_ = 0;
};

}  // namespace

struct Router::ShardPull {
  int64_t event = -1;  // Below 0: not yet asked.
  std::vector<int64_t> handles;
};

struct Router::PullJob {
  const RowSplit& split;
  RowBuffer out;
  PullGate& gate;
  const CallContext& context;
};

// One call, repeated while that makes sense: rows [first, first + count) of the
// shard's selection.
absl::Status Router::PullRun(const PullJob& job, int32_t shard, PullCall call,
                             int64_t first, int64_t count,
                             PullAnswer& answer) const {
  call.table = table_.name;
  call.row_bytes = table_.row_bytes();
  const RowSelection& selection = job.split.selections()[shard];
  const int64_t row_bytes = table_.row_bytes();
  const DeviceSelection copy = job.split.on(job.out.device, shard);
  call.device = job.out.device;
  call.bounds = selection.bounds;
  if (!copy.row_ids.empty() && !call.handle.has_value()) {
    call.device_row_ids = copy.row_ids.subspan(first, count);
  }
  if (selection.positions.empty()) {
    call.landing =
        job.out.rows + (selection.first_position + first) * row_bytes;
  } else {
    call.buffer = job.out.rows;
    call.positions =
        (copy.positions.empty() ? selection.positions : copy.positions)
            .subspan(first, count);
  }
  // To the device's memory, which `Synchronize` waits for.
  const auto place = [&](int64_t first_row, const kernels::HostPieces& rows,
                         int64_t row_count) {
    if (call.landing != nullptr) {
      return call.device->PlaceRows(rows, row_bytes, {},
                                    call.landing + first_row * row_bytes);
    }
    return call.device->PlaceRows(rows, row_bytes,
                                  call.positions.subspan(first_row, row_count),
                                  call.buffer);
  };
  return cluster_->CallServer(shard, job.context, [&](ShardChannel& channel) {
    AnswerCheck check(count, row_bytes);
    ROWHOUSE_RETURN_IF_ERROR(
        job.gate.Enter(shard, cluster_->clock(), job.context));
    bool placing = false;
    absl::StatusOr<PullAnswer> pulled = channel.Pull(
        call,
        [&](int64_t first_row,
            const kernels::HostPieces& rows) -> absl::Status {
          ROWHOUSE_ASSIGN_OR_RETURN(const int64_t landed,
                                    check.Next(first_row, rows));
          if (call.device != nullptr) {
            placing = true;
            return landed == 0 ? absl::OkStatus()
                               : place(first_row, rows, landed);
          }
          selection.Scatter(rows, row_bytes, first + first_row, landed,
                            job.out.rows);
          return absl::OkStatus();
        },
        job.context);
    // Nothing writes there any more when a pull has ended, whichever way.
    const absl::Status placed =
        placing ? call.device->Synchronize() : absl::OkStatus();
    job.gate.Leave(shard);
    ROWHOUSE_RETURN_IF_ERROR(pulled.status());
    ROWHOUSE_RETURN_IF_ERROR(placed);
    answer = *pulled;
    return answer.landed ? absl::OkStatus() : check.Finish();
  });
}

// A shard's rows, in as many calls as its limits ask for; all of the event of
// the first.
absl::Status Router::PullShard(const PullJob& job, int32_t shard,
                               const RoutedPull& pull,
                               ShardPull& result) const {
  result = {};
  const std::span<const int64_t> row_ids =
      job.split.selections()[shard].row_ids;
  PullCall call;
  call.trainer = pull.trainer;
  call.min_event = pull.min_event;
  call.exact_event = pull.exact_event;
  call.return_handle = pull.training && pull.trainer.has_value();
  call.training = pull.training;
  int64_t first = 0;
  const auto size = static_cast<int64_t>(row_ids.size());
  do {
    const int64_t count = std::min(pull_row_count_, size - first);
    call.row_ids = row_ids.subspan(first, count);
    PullAnswer answer;
    ROWHOUSE_RETURN_IF_ERROR(PullRun(job, shard, call, first, count, answer));
    result.event = answer.event;
    if (call.return_handle && count > 0) {
      result.handles.push_back(answer.handle);
    }
    call.min_event.reset();
    call.exact_event = answer.event;
    first += count;
  } while (first < size);
  // Of so many rows a shard gives no handle: the ids go again.
  if (std::find(result.handles.begin(), result.handles.end(), 0) !=
      result.handles.end()) {
    result.handles.clear();
  }
  return absl::OkStatus();
}

// One round: every shard, then those behind the newest answer once more. When
// the table moved on under it, EVENT_PAST, and `pull` asks for what was seen.
absl::Status Router::PullOnce(const PullJob& job, RoutedPull& pull,
                              std::vector<ShardPull>& results) const {
  std::vector<int32_t> shards;
  for (int32_t shard = 0; shard < shard_count(); ++shard) {
    if (job.split.selections()[shard].size() > 0) shards.push_back(shard);
  }
  if (shards.empty()) shards.push_back(0);  // No rows, but an event.
  const auto pull_all = [&](const RoutedPull& request) {
    return cluster_->pool().FanOut(
        static_cast<int32_t>(shards.size()), [&](int32_t i) {
          return PullShard(job, shards[i], request, results[shards[i]]);
        });
  };
  const absl::Status status = pull_all(pull);
  int64_t newest = pull.min_event.value_or(0);
  for (const ShardPull& result : results) {
    newest = std::max(newest, result.event);
  }
  if (!pull.exact_event.has_value()) pull.min_event = newest;
  ROWHOUSE_RETURN_IF_ERROR(status);
  std::erase_if(shards,
                [&](int32_t shard) { return results[shard].event == newest; });
  RoutedPull again = pull;
  again.min_event.reset();
  again.exact_event = newest;
  return pull_all(again);
}

absl::StatusOr<std::shared_ptr<const PulledRows>> Router::Pull(
    std::shared_ptr<const RowSplit> split, RowBuffer out,
    const RoutedPull& pull, PullGate& gate, const CallContext& context) const {
  RoutedPull request = pull;
  const PullJob job{*split, out, gate, context};
  for (int round = 0; round < kMaxRounds; ++round) {
    std::vector<ShardPull> results(shard_count());
    const absl::Status status = PullOnce(job, request, results);
    if (status.ok()) {
      auto rows = std::make_shared<PulledRows>();
      for (ShardPull& result : results) {
        rows->event = std::max(rows->event, result.event);
        if (pull.training) rows->handles.push_back(std::move(result.handles));
      }
      rows->split = std::move(split);
      return rows;
    }
    if (!IsPast(status) || pull.exact_event.has_value()) return status;
    if (cluster_->clock().Now() >= context.deadline) break;
  }
  return MovedOn();
}

absl::Status Router::RepullShard(const PullJob& job, const PulledRows& rows,
                                 TrainerSession trainer, int32_t shard) const {
  const int64_t size = job.split.selections()[shard].size();
  if (size == 0) return absl::OkStatus();
  absl::Status status = absl::OkStatus();
  int64_t first = 0;
  if (!rows.handles.empty() && !rows.handles[shard].empty()) {
    for (const int64_t handle : rows.handles[shard]) {
      const int64_t count = std::min(pull_row_count_, size - first);
      PullAnswer answer;
      PullCall call;
      call.handle = handle;
      call.trainer = trainer;
      status = PullRun(job, shard, call, first, count, answer);
      if (status.ok() && answer.event != rows.event) {
        status = absl::InternalError("a handle's rows of another event");
      }
      if (!status.ok()) break;
      first += count;
    }
    if (status.ok() || wire::ReasonOf(status) != wire::reasons::kHandleGone)
      return status;
  }
  ShardPull result;
  return PullShard(
      job, shard,
      {.trainer = trainer, .exact_event = rows.event, .training = false},
      result);
}

absl::Status Router::Repull(const PulledRows& rows, RowBuffer out,
                            TrainerSession trainer, PullGate& gate,
                            const CallContext& context) const {
  const PullJob job{*rows.split, out, gate, context};
  return cluster_->pool().FanOut(shard_count(), [&](int32_t shard) {
    return RepullShard(job, rows, trainer, shard);
  });
}

}  // namespace rowhouse::client::internal
