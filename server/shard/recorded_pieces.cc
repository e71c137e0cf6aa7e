#include "server/shard/recorded_pieces.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/dtype.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr auto kIdBytes = static_cast<int64_t>(sizeof(int64_t));
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
constexpr int64_t kTokenFloats = 3;
constexpr int64_t kCoefficients = 2;

int64_t CountOf(const StagedPart& part) {
  return part.head() == nullptr ? part.row_count() : part.token_count();
}

// All but ids and payload.
void ClearValues(RecordedPiece& piece) {
  for (std::vector<float>* values :
       {&piece.max_logits, &piece.exp_sums, &piece.upstream, &piece.target,
        &piece.smoothing, &piece.class_weights}) {
    values->clear();
  }
  piece.first_class_weight = 0;
}

// Of calls with tokens.
int64_t ClassWeightCount(const StagedPart& part) {
  if (part.token_count() == 0) return 0;
  const ClassWeights* const weights = part.head()->class_weights();
  return weights == nullptr ? 0 : weights->row_count;
}

int64_t FullItemBytes(const StagedPart& part, const ShardSpec& spec) {
  if (part.head() == nullptr) {
    return kIdBytes + spec.dim * kernels::SizeOf(spec.gradient_dtype);
  }
  const int64_t floats =
      kTokenFloats + (part.head()->has_coefficients() ? kCoefficients : 0);
  return kIdBytes + floats * kFloatBytes +
         spec.dim * kernels::SizeOf(part.head()->inputs().hidden_dtype);
}

}  // namespace

int64_t SizeBytes(const RecordedEvent& event, const ShardSpec& spec) {
  int64_t bytes = 0;
  std::set<const ClassWeights*> class_weights;
  for (const auto& [rank, contribution] : event.contributions) {
    for (const auto& [number, part] : contribution.parts) {
      bytes += CountOf(part) * FullItemBytes(part, spec);
      if (ClassWeightCount(part) == 0) continue;
      if (class_weights.insert(part.head()->class_weights()).second) {
        bytes += ClassWeightCount(part) * kFloatBytes;
      }
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
    next_class_weight_ = 0;
    class_weights_left_ = ClassWeightCount(next->second);
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
  piece.trainer_rank = rank_;
  piece.part = part_;
  piece.head = part->head() != nullptr;
  piece.softcap = piece.head ? part->head()->softcap() : 0.0F;
  piece.item_count = CountOf(*part);
  piece.first_item = next_;
  ClearValues(piece);
  if (class_weights_left_ > 0) {
    ROWHOUSE_RETURN_IF_ERROR(ReadClassWeights(*part->head(), piece));
    return true;
  }
  const int64_t most = std::max<int64_t>(1, max_bytes_ / ItemBytes(*part));
  const int64_t count = std::min(most, left_);
  ROWHOUSE_RETURN_IF_ERROR(piece.head ? ReadTokens(*part->head(), count, piece)
                                      : ReadRows(*part, count, piece));
  next_ += count;
  left_ -= count;
  return true;
}

absl::Status RecordedPieces::ReadClassWeights(const HeadOperands& head,
                                              RecordedPiece& piece) {
  const int64_t most = std::max<int64_t>(1, max_bytes_ / kFloatBytes);
  const int64_t count = std::min(most, class_weights_left_);
  piece.payload.clear();
  piece.ids.clear();
  piece.hidden_dtype = head.inputs().hidden_dtype;
  piece.first_class_weight = next_class_weight_;
  piece.class_weights.resize(count);
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.Copy(head.class_weights()->values() + next_class_weight_,
                    piece.class_weights.data(), count * kFloatBytes));
  next_class_weight_ += count;
  class_weights_left_ -= count;
  return backend_.Synchronize();
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
  if (full == 0) return ReadIds(head.targets() + next_, piece);
  ROWHOUSE_RETURN_IF_ERROR(backend_.Copy(head.hidden() + next_ * row_bytes,
                                         piece.payload.data(),
                                         full * row_bytes));
  const auto read = [&](const float* from, std::vector<float>& to) {
    to.resize(full);
    return backend_.Copy(from + next_, to.data(), full * kFloatBytes);
  };
  ROWHOUSE_RETURN_IF_ERROR(read(head.max_logits(), piece.max_logits));
  ROWHOUSE_RETURN_IF_ERROR(read(head.exp_sums(), piece.exp_sums));
  ROWHOUSE_RETURN_IF_ERROR(read(head.upstream(), piece.upstream));
  if (head.has_coefficients()) {
    ROWHOUSE_RETURN_IF_ERROR(read(head.target(), piece.target));
    ROWHOUSE_RETURN_IF_ERROR(read(head.smoothing(), piece.smoothing));
  }
  return ReadIds(head.targets() + next_, piece);
}

}  // namespace rowhouse::server
