#include "client/cli/checkpoint_text.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/elements.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%SZ", time, absl::UTCTimeZone());
}

// `1000`; `990 - 1000` where tables are of different events.
std::string EventsText(const client::CheckpointInfo& checkpoint) {
  if (checkpoint.tables.empty()) return "";
  const auto [first, last] = std::minmax_element(
      checkpoint.tables.begin(), checkpoint.tables.end(),
      [](const auto& a, const auto& b) { return a.event < b.event; });
  if (first->event == last->event) return absl::StrCat(first->event);
  return absl::StrCat(first->event, " - ", last->event);
}

Json OrNull(const std::optional<int64_t>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

std::string OrNothing(const std::optional<int64_t>& value) {
  return value.has_value() ? absl::StrCat(*value) : "";
}

Cell DifferenceOf(const client::CheckpointTableDiff& table) {
  if (!table.event.has_value()) return {"only in the other", Style::kBad};
  if (!table.other_event.has_value()) {
    return {"not in the other", Style::kBad};
  }
  if (table.shape_differs) return {"another shape", Style::kBad};
  if (table.equal()) return {"equal", Style::kFaint};
  return {absl::StrCat(Count(table.differing_row_count), " rows differ"),
          Style::kBad};
}

}  // namespace

std::string CheckpointListText(
    const std::vector<client::CheckpointInfo>& checkpoints, bool color) {
  TextTable text({{"checkpoint"},
                  {"created"},
                  {"tables", Align::kRight},
                  {"event", Align::kRight},
                  {"trainer states", Align::kRight},
                  {"size", Align::kRight},
                  {"base"}});
  for (const client::CheckpointInfo& checkpoint : checkpoints) {
    text.AddRow({checkpoint.name, TimeText(checkpoint.create_time),
                 absl::StrCat(checkpoint.tables.size()), EventsText(checkpoint),
                 absl::StrCat(checkpoint.trainer_state_count),
                 Bytes(checkpoint.size_bytes), checkpoint.base});
  }
  return text.ToString(color);
}

std::string CheckpointText(const client::CheckpointInfo& checkpoint,
                           bool color) {
  const bool delta = !checkpoint.base.empty();
  std::string out = absl::StrCat(
      "checkpoint ", checkpoint.name, ", ", TimeText(checkpoint.create_time),
      ", ", Bytes(checkpoint.size_bytes), "\n",
      delta ? absl::StrCat("rows that changed since ", checkpoint.base)
            : "all rows",
      "; ", checkpoint.trainer_state_count, " trainer states\n\n");
  TextTable text({{"table"},
                  {"event", Align::kRight},
                  {"kind"},
                  {"rows", Align::kRight},
                  {"dim", Align::kRight},
                  {"dtype"},
                  {"shards", Align::kRight},
                  {"saved rows", Align::kRight},
                  {"size", Align::kRight}});
  for (const client::CheckpointInfo::Table& table : checkpoint.tables) {
    const client::TableSpec spec = table.spec.value_or(client::TableSpec());
    text.AddRow({table.name, absl::StrCat(table.event),
                 spec.dense.has_value() ? "dense" : "sparse",
                 Count(spec.row_count), absl::StrCat(spec.dim),
                 NameOf(spec.row_dtype), absl::StrCat(spec.shard_count),
                 Count(table.saved_row_count), Bytes(table.size_bytes)});
  }
  return out + text.ToString(color);
}

std::string DiffText(const std::vector<client::CheckpointTableDiff>& tables,
                     bool color) {
  TextTable text({{"table"},
                  {"event", Align::kRight},
                  {"other event", Align::kRight},
                  {"rows"},
                  {"first", Align::kRight}});
  for (const client::CheckpointTableDiff& table : tables) {
    text.AddRow({table.name, OrNothing(table.event),
                 OrNothing(table.other_event), DifferenceOf(table),
                 OrNothing(table.first_differing_row_id)});
  }
  return text.ToString(color);
}

Json ToJson(const client::CheckpointInfo& checkpoint) {
  Json json = {{"checkpoint", checkpoint.name},
               {"create_time",
                absl::FormatTime(absl::RFC3339_full, checkpoint.create_time,
                                 absl::UTCTimeZone())},
               {"base", checkpoint.base},
               {"trainer_state_count", checkpoint.trainer_state_count},
               {"size_bytes", checkpoint.size_bytes},
               {"tables", Json::array()}};
  for (const client::CheckpointInfo::Table& table : checkpoint.tables) {
    Json entry = {{"table", table.name},
                  {"event", table.event},
                  {"saved_row_count", table.saved_row_count},
                  {"size_bytes", table.size_bytes}};
    if (table.spec.has_value()) entry["spec"] = ToJson(*table.spec);
    json["tables"].push_back(std::move(entry));
  }
  return json;
}

Json ToJson(const client::CheckpointTableDiff& table) {
  return {{"table", table.name},
          {"event", OrNull(table.event)},
          {"other_event", OrNull(table.other_event)},
          {"shape_differs", table.shape_differs},
          {"differing_row_count", table.differing_row_count},
          {"first_differing_row_id", OrNull(table.first_differing_row_id)}};
}

}  // namespace rowhouse::cli
