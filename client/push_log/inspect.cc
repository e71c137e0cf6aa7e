#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "client/push_log/log_scan.h"
#include "client/push_log/push_log.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

int64_t MostRows(const EventPlace& event) {
  std::map<int32_t, int64_t> rows;  // By rank.
  int64_t most = 0;
  for (const PartPlace& part : event.parts) {
    if (part.head) continue;
    most = std::max(most, rows[part.rank] += part.item_count);
  }
  return most;
}

}  // namespace

absl::StatusOr<LogInfo> Inspect(const std::string& path) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<LogScan> scan,
                            LogScan::Open(path));
  LogCounts counts;
  int64_t most_row_count = 0;
  while (true) {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<EventPlace> event,
                              scan->NextEvent());
    if (!event.has_value()) break;
    Count(*event, counts);
    most_row_count = std::max(most_row_count, MostRows(*event));
  }
  LogInfo info = scan->info();
  info.counts = counts;
  info.most_row_count = most_row_count;
  return info;
}

}  // namespace rowhouse::client::push_log
