#include "server/shard/recorded_pieces.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr auto kIdBytes = static_cast<int64_t>(sizeof(int64_t));
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
constexpr int64_t kTokenFloats = 3;

int64_t CountOf(const StagedPart& part) {
  return part.head() == nullptr ? part.row_count() : part.token_count();
}

int64_t FullItemBytes(const StagedPart& part, const ShardSpec& spec) {
  if (part.head() == nullptr) {
    return kIdBytes + spec.dim * kernels::SizeOf(spec.gradient_dtype);
  }
  return kIdBytes + kTokenFloats * kFloatBytes +
         spec.dim * kernels::SizeOf(part.head()->inputs().hidden_dtype);
}

}  // namespace

int64_t SizeBytes(const RecordedEvent& event, const ShardSpec& spec) {
  int64_t bytes = 0;
  for (const auto& [rank, contribution] : event.contributions) {
    for (const auto& [number, part] : contribution.parts) {
      bytes += CountOf(part) * FullItemBytes(part, spec);
    }
  }
  return bytes;
}

const StagedPart* RecordedPieces::NextPart(const RecordedEvent& event) {
  for (auto contribution = event.contributions.lower_bound(rank_);
       contribution != event.contributions.end(); ++contribution) {
    if (contribution->first != rank_) part_ = -1;
    rank_ = contribution->first;
    const auto next = contribution->second.parts.upper_bound(part_);
    if (next == contribution->second.parts.end()) continue;
    part_ = next->first;
    next_ = 0;
    left_ = CountOf(next->second);
    return &next->second;
  }
  rank_ = 0;
  part_ = -1;
  return nullptr;
}

absl::StatusOr<bool> RecordedPieces::Next(const RecordedEvent& event,
                                          RecordedPiece& piece) {
  const StagedPart* const part =
      left_ > 0 ? &event.contributions.at(rank_).parts.at(part_)
                : NextPart(event);
  if (part == nullptr) return false;
  const int64_t most = std::max<int64_t>(1, max_bytes_ / ItemBytes(*part));
  const int64_t count = std::min(most, left_);
  piece.trainer_rank = rank_;
  piece.part = part_;
  piece.head = part->head() != nullptr;
  piece.item_count = CountOf(*part);
  piece.first_item = next_;
  ROWHOUSE_RETURN_IF_ERROR(piece.head ? ReadTokens(*part->head(), count, piece)
                                      : ReadRows(*part, count, piece));
  next_ += count;
  left_ -= count;
  return true;
}

int64_t RecordedPieces::ItemBytes(const StagedPart& part) const {
  return part.head() != nullptr && targets_only_ ? kIdBytes
                                                 : FullItemBytes(part, spec_);
}

// Waits for all copies of the piece.
absl::Status RecordedPieces::ReadIds(const int64_t* slots,
                                     RecordedPiece& piece) const {
  if (!piece.ids.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(
        backend_.Copy(slots, piece.ids.data(),
                      static_cast<int64_t>(piece.ids.size()) * kIdBytes));
  }
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  const int64_t first_row_id = spec_.placement.first_row(spec_.shard_index);
  for (int64_t& id : piece.ids) {
    if (id >= 0) id += first_row_id;
  }
  return absl::OkStatus();
}

absl::Status RecordedPieces::ReadRows(const StagedPart& part, int64_t count,
                                      RecordedPiece& piece) const {
  const int64_t row_bytes = spec_.dim * kernels::SizeOf(spec_.gradient_dtype);
  piece.ids.resize(count);
  piece.payload.resize(count * row_bytes);
  piece.max_logits.clear();
  piece.exp_sums.clear();
  piece.upstream.clear();
  if (count > 0) {
    ROWHOUSE_RETURN_IF_ERROR(backend_.Copy(part.rows() + next_ * row_bytes,
                                           piece.payload.data(),
                                           count * row_bytes));
  }
  return ReadIds(part.slots() + next_, piece);
}

absl::Status RecordedPieces::ReadTokens(const HeadOperands& head, int64_t count,
                                        RecordedPiece& piece) const {
  piece.hidden_dtype = head.inputs().hidden_dtype;
  const int64_t row_bytes = spec_.dim * kernels::SizeOf(piece.hidden_dtype);
  const int64_t full = targets_only_ ? 0 : count;
  piece.ids.resize(count);
  piece.payload.resize(full * row_bytes);
  piece.max_logits.resize(full);
  piece.exp_sums.resize(full);
  piece.upstream.resize(full);
  const kernels::HeadMerged merged = head.merged();
  const struct {
    const void* from;
    void* to;
    int64_t item_bytes;
  } copies[] = {{head.hidden(), piece.payload.data(), row_bytes},
                {merged.max_logits, piece.max_logits.data(), kFloatBytes},
                {merged.exp_sums, piece.exp_sums.data(), kFloatBytes},
                {merged.upstream, piece.upstream.data(), kFloatBytes}};
  for (const auto& copy : copies) {
    if (full == 0) break;
    ROWHOUSE_RETURN_IF_ERROR(backend_.Copy(
        static_cast<const char*>(copy.from) + next_ * copy.item_bytes, copy.to,
        full * copy.item_bytes));
  }
  return ReadIds(head.targets() + next_, piece);
}

}  // namespace rowhouse::server
