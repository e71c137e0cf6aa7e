#include "server/shard/fold_cursor.h"

#include <algorithm>
#include <cstdint>

namespace rowhouse::server {
namespace {

// Whether all ranks have sealed and none has a part from `part` on.
bool IsThrough(const Events& events, int64_t event, int32_t part) {
  const int32_t trainer_count = events.trainer_counts().At(event);
  for (int32_t rank = 0; rank < trainer_count; ++rank) {
    const Contribution* contribution = events.Find(event, rank);
    if (contribution == nullptr || !contribution->sealed ||
        static_cast<int32_t>(contribution->parts.size()) > part) {
      return false;
    }
  }
  return true;
}

}  // namespace

const StagedPart* FoldCursor::Next(const Events& events) {
  const int64_t event = events.applied() + 1;
  while (true) {
    if (rank_ == events.trainer_counts().At(event)) {
      rank_ = 0;
      ++part_;
    }
    const Contribution* contribution = events.Find(event, rank_);
    if (contribution == nullptr) return nullptr;
    const auto part = contribution->parts.find(part_);
    if (part != contribution->parts.end()) return &part->second;
    // A sealed contribution has the parts from 0 to its count.
    if (!contribution->sealed || IsThrough(events, event, part_)) {
      return nullptr;
    }
    ++rank_;
  }
}

int32_t FoldCursor::FoldedCount(const Contribution& contribution,
                                int32_t trainer_rank) const {
  const int32_t turns = part_ + (trainer_rank < rank_ ? 1 : 0);
  return std::min(turns, static_cast<int32_t>(contribution.parts.size()));
}

}  // namespace rowhouse::server
