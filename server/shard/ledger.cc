#include "server/shard/ledger.h"

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

bool SameIds(const PartContent& known, const PartContent& content) {
  if (!content.handles.empty() && content.handles == known.handles) return true;
  return content.ids.has_value() && content.ids == known.ids;
}

}  // namespace

bool Ledger::HasHandles(const PartName& name,
                        const std::vector<int64_t>& handles) const {
  return entries_.at(name).content.handles == handles;
}

absl::StatusOr<PartReceipt> Ledger::Answer(const PartName& name,
                                           const PartContent& content) const {
  const Entry& entry = entries_.at(name);
  const PartContent& known = entry.content;
  const char* difference = nullptr;
  if (content.row_count != known.row_count) {
    difference = "row count";
  } else if (!SameIds(known, content)) {
    difference = "row ids";
  } else if (content.rows != known.rows) {
    difference = "rows";
  }
  if (difference != nullptr) {
    return wire::Error(
        absl::StatusCode::kAlreadyExists, wire::reasons::kPartDiffers,
        absl::StrCat("part ", name.part, " of rank ", name.trainer_rank,
                     " for event ", name.event, " has other ", difference,
                     " than when it was accepted, with ", known.row_count,
                     " rows"),
        {{"event", absl::StrCat(name.event)},
         {"trainer_rank", absl::StrCat(name.trainer_rank)},
         {"part", absl::StrCat(name.part)},
         {"difference", difference}});
  }
  PartReceipt receipt = entry.receipt;
  receipt.duplicate = true;
  return receipt;
}

void Ledger::Record(const PartName& name, PartContent content,
                    const PartReceipt& receipt) {
  entries_[name] = {std::move(content), receipt};
}

void Ledger::Drop(int64_t event, int32_t trainer_rank) {
  constexpr int32_t kLast = std::numeric_limits<int32_t>::max();
  entries_.erase(entries_.lower_bound({event, trainer_rank, 0}),
                 entries_.upper_bound({event, trainer_rank, kLast}));
}

void Ledger::DropBefore(int64_t event) {
  constexpr int32_t kFirst = std::numeric_limits<int32_t>::min();
  entries_.erase(entries_.begin(),
                 entries_.lower_bound({event, kFirst, kFirst}));
}

}  // namespace rowhouse::server
