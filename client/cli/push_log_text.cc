#include "client/cli/push_log_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/units.h"

namespace rowhouse::cli {

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
