#include "client/internal/router.h"

#include <algorithm>
#include <utility>

#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr int64_t kMaxPullRowCount = 400000;
constexpr int64_t kDefaultMaxPullBytes = int64_t{64} << 20;

// Rows of one pull call: a table's, and its servers', limits.
int64_t PullRowCount(const ClusterCore& cluster, const TableInfo& table) {
  const int64_t max_bytes = table.spec.max_pull_bytes == 0
                                ? kDefaultMaxPullBytes
                                : table.spec.max_pull_bytes;
  int64_t count = std::min(kMaxPullRowCount, max_bytes / table.row_bytes());
  for (const ServerInfo& server : cluster.servers()) {
    if (server.max_pull_row_count > 0) {
      count = std::min(count, server.max_pull_row_count);
    }
  }
  return std::max<int64_t>(count, 1);
}

}  // namespace

absl::Status CheckReadEvents(std::optional<int64_t> min_event,
                             std::optional<int64_t> exact_event) {
  if (!min_event.has_value() || !exact_event.has_value()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "min_event and exact_event, wanted one of them");
}

absl::StatusOr<std::unique_ptr<Router>> Router::Make(
    std::shared_ptr<ClusterCore> cluster, TableInfo table) {
  if (table.spec.dim < 1) {
    return absl::InternalError("a table of rows without elements");
  }
  std::vector<int64_t> bounds = {0};
  for (const TableShard& shard : table.shards) bounds.push_back(shard.end_row);
  ROWHOUSE_ASSIGN_OR_RETURN(
      wire::Placement placement,
      wire::Placement::Explicit(table.spec.row_count, bounds));
  return std::unique_ptr<Router>(
      new Router(std::move(cluster), std::move(table), std::move(placement)));
}

Router::Router(std::shared_ptr<ClusterCore> cluster, TableInfo table,
               wire::Placement placement)
    : cluster_(std::move(cluster)),
      table_(std::move(table)),
      placement_(std::move(placement)),
      pull_row_count_(PullRowCount(*cluster_, table_)) {}

absl::StatusOr<bool> Router::Push(const RoutedPush& push,
                                  const CallContext& context) const {
  std::vector<char> duplicate(shard_count());
  ROWHOUSE_RETURN_IF_ERROR(
      cluster_->pool().FanOut(shard_count(), [&](int32_t shard) {
        absl::StatusOr<PushAnswer> answer = PushShard(push, shard, context);
        if (answer.ok()) duplicate[shard] = answer->duplicate ? 1 : 0;
        return answer.status();
      }));
  return std::find(duplicate.begin(), duplicate.end(), 1) != duplicate.end();
}

absl::StatusOr<PushAnswer> Router::PushShard(const RoutedPush& push,
                                             int32_t shard,
                                             const CallContext& context) const {
  const int64_t row_bytes = table_.gradient_row_bytes();
  const int64_t message_bytes = message_bytes_;
  const RowSelection& selection = push.rows->split->selections()[shard];
  const DeviceSelection copy = push.rows->split->on(push.device, shard);
  PushCall call{.table = table_.name,
                .trainer = push.trainer,
                .event = push.event,
                .part = push.part,
                .dtype = table_.spec.gradient_dtype,
                .selection = &selection,
                .handles = {},
                .rows = push.gradients,
                .device = push.device,
                .positions = copy.positions.empty() ? selection.positions
                                                    : copy.positions,
                .device_row_ids = copy.row_ids,
                .row_bytes = row_bytes,
                .message_row_count = 1,
                .seal_part_count = push.seal_part_count};
  // Ids count too: rows may be shorter than their ids.
  call.message_row_count = std::max<int64_t>(
      1, message_bytes / std::max<int64_t>(row_bytes, sizeof(int64_t)));
  if (!push.rows->handles.empty()) call.handles = push.rows->handles[shard];
  PushAnswer answer;
  ROWHOUSE_RETURN_IF_ERROR(
      cluster_->CallServer(shard, context, [&](ShardChannel& channel) {
        absl::StatusOr<PushAnswer> pushed = channel.Push(call, context);
        if (wire::ReasonOf(pushed.status()) == wire::reasons::kHandleGone &&
            !call.handles.empty()) {
          call.handles.clear();
          pushed = channel.Push(call, context);
        }
        if (pushed.ok()) answer = *pushed;
        return pushed.status();
      }));
  return answer;
}

}  // namespace rowhouse::client::internal
