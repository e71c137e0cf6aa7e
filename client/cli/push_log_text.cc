#include "client/cli/push_log_text.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/table_view.h"
#include "client/cli/units.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::cli {

std::string EventsText(int64_t start_event, int64_t last_event) {
  const int64_t first = start_event + 1;
  if (last_event < first) return "no event";
  if (last_event == first) return absl::StrCat("event ", first);
  return absl::StrCat("events ", first, " to ", last_event);
}

std::string CountsText(const client::push_log::LogCounts& counts) {
  std::string text = absl::StrCat(Count(counts.event_count), " events, ",
                                  Count(counts.part_count), " parts, ",
                                  Count(counts.row_count), " rows");
  if (counts.head_part_count > 0) {
    absl::StrAppend(&text, ", of the parts ", Count(counts.head_part_count),
                    " of head calls with ", Count(counts.token_count),
                    " tokens");
  }
  return text;
}

std::string DigestText(const client::TableDigest& digest) {
  return absl::StrFormat("%016x at event %d", digest.digest, digest.event);
}

std::string EndDigestText(const client::push_log::RecordReport& report,
                          const std::string& table) {
  if (report.end_digest.has_value()) {
    return absl::StrCat("digest ", DigestText(*report.end_digest), "\n");
  }
  if (report.digest_fault.ok()) return "";
  if (wire::ReasonOf(report.digest_fault) != wire::reasons::kEventPast) {
    return absl::StrCat("no digest: ", report.digest_fault.message(), "\n");
  }
  return absl::StrCat("no digest: table ", table, " has gone on past event ",
                      report.last_event,
                      "; --until=EVENT gives one while it is trained\n");
}

std::string ArithmeticText(const client::push_log::LogInfo& info) {
  if (info.counts.head_part_count == 0) return "";
  std::map<std::string, std::vector<int32_t>> shards;
  for (size_t shard = 0; shard < info.arithmetic.size(); ++shard) {
    shards[info.arithmetic[shard]].push_back(static_cast<int32_t>(shard));
  }
  std::string text;
  for (const auto& [arithmetic, those] : shards) {
    absl::StrAppend(&text, "head parts of ",
                    those.size() == 1 ? "shard " : "shards ", Ranks(those),
                    " recorded with ", arithmetic, "\n");
  }
  absl::StrAppend(
      &text, "equal bits of a replay are sure only with the same, on the same ",
      info.spec.shard_count, " slices\n");
  return text;
}

Json ToJson(const client::push_log::LogCounts& counts) {
  return {{"event_count", counts.event_count},
          {"skipped_event_count", counts.skipped_event_count},
          {"part_count", counts.part_count},
          {"head_part_count", counts.head_part_count},
          {"row_count", counts.row_count},
          {"token_count", counts.token_count}};
}

Json ToJson(const client::TableDigest& digest) {
  return {{"digest", absl::StrFormat("%016x", digest.digest)},
          {"event", digest.event}};
}

Json ToJson(const std::optional<client::TableDigest>& digest) {
  return digest.has_value() ? ToJson(*digest) : Json(nullptr);
}

}  // namespace rowhouse::cli
