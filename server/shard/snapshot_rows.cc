#include "server/shard/snapshot_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kAlignment = 256;

class Piece final : public SnapshotPiece {
 public:
  Piece(std::shared_ptr<const ChunkLayout> layout,
        std::shared_ptr<SnapshotChunks> chunks, kernels::Buffer chunk,
        bool before_images, int64_t first_place, int64_t row_count,
        std::vector<int64_t> places)
      : layout_(std::move(layout)),
        chunks_(std::move(chunks)),
        chunk_(std::move(chunk)),
        before_images_(before_images),
        first_place_(first_place),
        row_count_(row_count),
        places_(std::move(places)) {}
  ~Piece() override { chunks_->Return(std::move(chunk_)); }

  bool before_images() const override { return before_images_; }
  std::span<const int64_t> places() const override { return places_; }
  int64_t first_place() const override { return first_place_; }
  int64_t row_count() const override { return row_count_; }
  std::span<std::byte> rows(size_t column) override {
    return {
        chunk_.as<std::byte>() + layout_->offset(column),
        static_cast<size_t>(row_count_ * layout_->columns()[column].row_bytes)};
  }

 private:
  const std::shared_ptr<const ChunkLayout> layout_;
  const std::shared_ptr<SnapshotChunks> chunks_;
  kernels::Buffer chunk_;
  const bool before_images_;
  const int64_t first_place_;
  const int64_t row_count_;
  const std::vector<int64_t> places_;
};

// A column as a table of elements of 2 bytes, to gather from: of any type.
kernels::RowTable Elements(void* data, int64_t row_count,
                           const RowColumn& column) {
  kernels::RowTable table;
  table.weights = data;
  table.row_count = row_count;
  table.dtype = kernels::DType::kBf16;
  table.dim = column.row_bytes / kernels::SizeOf(table.dtype);
  return table;
}

}  // namespace

ChunkLayout::ChunkLayout(std::vector<RowColumn> columns,
                         int64_t block_row_count)
    : columns_(std::move(columns)), block_row_count_(block_row_count) {
  for (const RowColumn& column : columns_) {
    offsets_.push_back(size_bytes_);
    const int64_t bytes = block_row_count * column.row_bytes;
    size_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
}

SnapshotRows::SnapshotRows(Source source,
                           std::shared_ptr<const ChunkLayout> layout,
                           std::shared_ptr<SnapshotChunks> chunks)
    : source_(std::move(source)),
      layout_(std::move(layout)),
      chunks_(std::move(chunks)),
      row_count_(source_.has_base ? static_cast<int64_t>(source_.slots.size())
                                  : source_.shard_row_count) {
  const int64_t block = layout_->block_row_count();
  marked_.resize(static_cast<size_t>((row_count_ + block - 1) / block));
}

absl::StatusOr<std::unique_ptr<SnapshotPiece>> SnapshotRows::Next() {
  if (!ahead_.empty()) {
    std::unique_ptr<SnapshotPiece> piece = std::move(ahead_.front());
    ahead_.pop_front();
    return piece;
  }
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<kernels::Buffer> chunk,
                            chunks_->Take());
  if (!chunk.has_value()) return nullptr;
  const int64_t row_count =
      std::min(layout_->block_row_count(), row_count_ - next_);
  ROWHOUSE_RETURN_IF_ERROR(CopyBlock(row_count, *chunk));
  auto piece =
      std::make_unique<Piece>(layout_, chunks_, *std::move(chunk), false, next_,
                              row_count, TakeMarked(row_count));
  next_ += row_count;
  return piece;
}

absl::Status SnapshotRows::CopyBlock(int64_t row_count,
                                     const kernels::Buffer& chunk) {
  if (source_.has_base) {
    std::vector<int64_t> places(static_cast<size_t>(row_count));
    for (int64_t i = 0; i < row_count; ++i) places[i] = next_ + i;
    return Gather(places, chunk);
  }
  for (size_t c = 0; c < source_.columns.size(); ++c) {
    const int64_t row_bytes = layout_->columns()[c].row_bytes;
    ROWHOUSE_RETURN_IF_ERROR(source_.backend->Copy(
        static_cast<const char*>(source_.columns[c]) + next_ * row_bytes,
        chunk.as<char>() + layout_->offset(c), row_count * row_bytes));
  }
  return source_.backend->Synchronize();
}

std::vector<int64_t> SnapshotRows::TakeMarked(int64_t row_count) {
  std::vector<int64_t> places;
  std::vector<bool>& marked =
      marked_[static_cast<size_t>(next_ / layout_->block_row_count())];
  if (marked.empty()) return places;
  for (int64_t i = 0; i < row_count; ++i) {
    if (marked[static_cast<size_t>(i)]) places.push_back(next_ + i);
  }
  marked = {};
  return places;
}

absl::StatusOr<bool> SnapshotRows::PutAside(std::span<const int64_t> slots) {
  return PutAsideAll(static_cast<int64_t>(slots.size()), [&](int64_t i) {
    return PlaceOf(slots[static_cast<size_t>(i)]);
  });
}

absl::StatusOr<bool> SnapshotRows::PutAllAside() {
  return PutAsideAll(row_count_ - next_,
                     [first = next_](int64_t i) { return first + i; });
}

template <typename PlaceAt>
absl::StatusOr<bool> SnapshotRows::PutAsideAll(int64_t count,
                                               PlaceAt place_at) {
  std::optional<kernels::Buffer> chunk;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = place_at(i);
    if (place == kNone || !Waits(place)) continue;
    if (!chunk.has_value()) {
      ROWHOUSE_ASSIGN_OR_RETURN(chunk, chunks_->Take());
      if (!chunk.has_value()) return false;
    }
    Mark(place);
    places.push_back(place);
    if (static_cast<int64_t>(places.size()) == layout_->block_row_count()) {
      ROWHOUSE_RETURN_IF_ERROR(
          Flush(std::exchange(places, {}), *std::move(chunk)));
      chunk.reset();
    }
  }
  if (chunk.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(Flush(std::move(places), *std::move(chunk)));
  }
  return true;
}

absl::Status SnapshotRows::Flush(std::vector<int64_t> places,
                                 kernels::Buffer chunk) {
  std::sort(places.begin(), places.end());
  ROWHOUSE_RETURN_IF_ERROR(Gather(places, chunk));
  const auto row_count = static_cast<int64_t>(places.size());
  ahead_row_count_ += row_count;
  ahead_.push_back(std::make_unique<Piece>(layout_, chunks_, std::move(chunk),
                                           true, 0, row_count,
                                           std::move(places)));
  return absl::OkStatus();
}

absl::Status SnapshotRows::Gather(std::span<const int64_t> places,
                                  const kernels::Buffer& chunk) {
  std::vector<int64_t> slots(places.begin(), places.end());
  if (source_.has_base) {
    for (int64_t& slot : slots) {
      slot = source_.slots[static_cast<size_t>(slot)];
    }
  }
  for (size_t c = 0; c < source_.columns.size(); ++c) {
    ROWHOUSE_RETURN_IF_ERROR(source_.backend->GatherRows(
        Elements(source_.columns[c], source_.shard_row_count,
                 layout_->columns()[c]),
        slots, chunk.as<char>() + layout_->offset(c)));
  }
  return source_.backend->Synchronize();
}

int64_t SnapshotRows::PlaceOf(int64_t slot) const {
  if (!source_.has_base) return slot;
  const auto found =
      std::lower_bound(source_.slots.begin(), source_.slots.end(), slot);
  if (found == source_.slots.end() || *found != slot) return kNone;
  return found - source_.slots.begin();
}

bool SnapshotRows::Waits(int64_t place) const {
  if (place < next_) return false;
  const int64_t block = layout_->block_row_count();
  const std::vector<bool>& marked = marked_[static_cast<size_t>(place / block)];
  return marked.empty() || !marked[static_cast<size_t>(place % block)];
}

void SnapshotRows::Mark(int64_t place) {
  const int64_t block = layout_->block_row_count();
  std::vector<bool>& marked = marked_[static_cast<size_t>(place / block)];
  if (marked.empty()) marked.resize(static_cast<size_t>(block));
  marked[static_cast<size_t>(place % block)] = true;
}

absl::StatusOr<std::vector<int64_t>> SlotsChangedSince(
    kernels::Backend& backend, const kernels::RowState* states,
    int64_t row_count, int64_t event, SnapshotChunks& chunks) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<kernels::Buffer> chunk,
                            chunks.Take());
  constexpr auto kStateBytes = static_cast<int64_t>(sizeof(kernels::RowState));
  const int64_t most = chunk->size_bytes() / kStateBytes;
  const auto* const copied = chunk->as<const kernels::RowState>();
  std::vector<int64_t> slots;
  for (int64_t first = 0; first < row_count; first += most) {
    const int64_t count = std::min(most, row_count - first);
    ROWHOUSE_RETURN_IF_ERROR(
        backend.Copy(states + first, chunk->data(), count * kStateBytes));
    ROWHOUSE_RETURN_IF_ERROR(backend.Synchronize());
    for (int64_t i = 0; i < count; ++i) {
      if (copied[i].last_event > event) slots.push_back(first + i);
    }
  }
  chunks.Return(*std::move(chunk));
  return slots;
}

}  // namespace rowhouse::server
