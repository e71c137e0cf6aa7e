#include "client/internal/observed_channel.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "client/internal/span_timer.h"

namespace rowhouse::client::internal {
namespace {

// Notes when a pull came where.
class PullTimes final : public PullWatch {
 public:
  void IdsSent() override { ids_sent_ = absl::Now(); }
  void RowsBegin() override { rows_begin_ = absl::Now(); }

  // Tells of the three spans of a pull that has just ended.
  void Tell(const Observer& observer, Span span) const {
    span.end = absl::Now();
    const absl::Time begin = span.begin;
    const absl::Time end = span.end;
    const absl::Time rows_begin =
        rows_begin_ < begin ? end : rows_begin_;  // Or nobody said.
    const auto tell = [&](Stage stage, absl::Time from, absl::Time to) {
      span.stage = stage;
      span.begin = from;
      span.end = to;
      observer(span);
    };
    if (ids_sent_ >= begin) tell(Stage::kSendIds, begin, ids_sent_);
    tell(Stage::kAwaitRows, std::max(begin, ids_sent_), rows_begin);
    tell(Stage::kTakeRows, rows_begin, end);
  }

 private:
  absl::Time ids_sent_ = absl::InfinitePast();
  absl::Time rows_begin_ = absl::InfinitePast();
};

}  // namespace

absl::Status ObservedChannel::Seal(std::string_view table,
                                   TrainerSession trainer, int64_t event,
                                   int32_t part_count,
                                   const CallContext& context) {
  SpanTimer timer(observer_, Stage::kSeal, event, shard_);
  absl::Status status =
      ForwardingShardChannel::Seal(table, trainer, event, part_count, context);
  if (status.ok()) timer.End();
  return status;
}

absl::StatusOr<EventState> ObservedChannel::GetEventState(
    std::string_view table, const EventWait& wait, const CallContext& context) {
  SpanTimer timer(observer_, Stage::kAwaitEvent, wait.applied_event.value_or(0),
                  shard_);
  absl::StatusOr<EventState> state =
      ForwardingShardChannel::GetEventState(table, wait, context);
  if (state.ok() && wait.applied_event.has_value()) timer.End();
  return state;
}

absl::Status ObservedChannel::Commit(std::string_view table,
                                     TrainerSession trainer, int64_t event,
                                     const EventCommit& commit,
                                     const CallContext& context) {
  SpanTimer timer(observer_, Stage::kCommit, event, shard_);
  absl::Status status =
      ForwardingShardChannel::Commit(table, trainer, event, commit, context);
  if (status.ok()) timer.End();
  return status;
}

absl::StatusOr<PullAnswer> ObservedChannel::Pull(const PullCall& call,
                                                 RowSink sink,
                                                 const CallContext& context) {
  PullTimes times;
  PullCall watched = call;
  watched.watch = &times;
  Span span;
  span.shard = shard_;
  span.begin = absl::Now();
  absl::StatusOr<PullAnswer> answer =
      ForwardingShardChannel::Pull(watched, sink, context);
  if (answer.ok()) {
    span.event = answer->event;
    span.row_count = answer->row_count;
    span.path = answer->path;
    times.Tell(observer_, span);
  }
  return answer;
}

absl::StatusOr<PushAnswer> ObservedChannel::Push(const PushCall& call,
                                                 const CallContext& context) {
  SpanTimer timer(observer_, Stage::kPush, call.event, shard_);
  absl::StatusOr<PushAnswer> answer =
      ForwardingShardChannel::Push(call, context);
  if (answer.ok()) timer.End(call.selection->size(), answer->path);
  return answer;
}

}  // namespace rowhouse::client::internal
