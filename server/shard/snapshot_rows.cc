#include "server/shard/snapshot_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
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

// Rows [first_row, first_row + row_count) of a chunk.
class Piece : public SnapshotPiece {
 public:
  Piece(std::shared_ptr<const ChunkLayout> layout,
        std::shared_ptr<ChunkMemory> memory, int64_t first_row,
        int64_t row_count, std::vector<int64_t> places)
      : layout_(std::move(layout)),
        memory_(std::move(memory)),
        first_row_(first_row),
        row_count_(row_count),
        places_(std::move(places)) {}

  std::span<const int64_t> places() const override { return places_; }
  int64_t row_count() const override { return row_count_; }
  std::span<std::byte> rows(size_t column) override {
    const int64_t row_bytes = layout_->columns()[column].row_bytes;
    return {memory_->data() + layout_->offset(column) + first_row_ * row_bytes,
            static_cast<size_t>(row_count_ * row_bytes)};
  }

 protected:
  const ChunkLayout& layout() const { return *layout_; }

 private:
  const std::shared_ptr<const ChunkLayout> layout_;
  const std::shared_ptr<ChunkMemory> memory_;
  const int64_t first_row_;
  const int64_t row_count_;
  const std::vector<int64_t> places_;
};

class BeforeImages final : public Piece {
 public:
  using Piece::Piece;
  bool before_images() const override { return true; }
  int64_t first_place() const override { return 0; }
  void TakeKeptRows() override {}
};

class Block final : public Piece {
 public:
  // A row that was kept, of a chunk.
  struct Kept {
    std::shared_ptr<ChunkMemory> memory;
    int32_t row;
    int32_t in_block;
  };

  Block(std::shared_ptr<const ChunkLayout> layout,
        std::shared_ptr<ChunkMemory> memory, int64_t first_place,
        int64_t row_count, std::vector<int64_t> places, std::vector<Kept> kept)
      : Piece(std::move(layout), std::move(memory), 0, row_count,
              std::move(places)),
        first_place_(first_place),
        kept_(std::move(kept)) {}

  bool before_images() const override { return false; }
  int64_t first_place() const override { return first_place_; }
  void TakeKeptRows() override {
    for (size_t c = 0; c < layout().columns().size(); ++c) {
      const auto size = static_cast<size_t>(layout().columns()[c].row_bytes);
      std::byte* const to = rows(c).data();
      for (const Kept& kept : kept_) {
        std::memcpy(to + static_cast<size_t>(kept.in_block) * size,
                    kept.memory->data() + layout().offset(c) +
                        static_cast<size_t>(kept.row) * size,
                    size);
      }
    }
    kept_.clear();
  }

 private:
  const int64_t first_place_;
  std::vector<Kept> kept_;
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
  const auto blocks = static_cast<size_t>((row_count_ + block - 1) / block);
  marked_.resize(blocks);
  kept_rows_.resize(blocks);
}

absl::StatusOr<std::unique_ptr<SnapshotPiece>> SnapshotRows::Next() {
  Kept* const oldest =
      short_of_chunks_ && !went_ahead_ ? OldestInMemory() : nullptr;
  went_ahead_ = oldest != nullptr;
  if (oldest != nullptr) return GoAhead(*oldest);
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<kernels::Buffer> chunk,
                            chunks_->Take());
  if (!chunk.has_value()) return nullptr;
  auto memory = std::make_shared<ChunkMemory>(chunks_, *std::move(chunk));
  const int64_t row_count =
      std::min(layout_->block_row_count(), row_count_ - next_);
  ROWHOUSE_RETURN_IF_ERROR(CopyBlock(row_count, memory->data()));
  const auto index = static_cast<size_t>(next_ / layout_->block_row_count());
  std::vector<int64_t> ahead;
  std::vector<Block::Kept> kept;
  for (const KeptRow& row : std::exchange(kept_rows_[index], {})) {
    if (row.kept->memory == nullptr) {
      ahead.push_back(next_ + row.in_block);
    } else {
      kept.push_back({row.kept->memory, row.row, row.in_block});
    }
    --row.kept->left;
  }
  std::sort(ahead.begin(), ahead.end());
  kept_.remove_if([](const Kept& one) { return one.left == 0; });
  marked_[index] = {};
  auto block =
      std::make_unique<Block>(layout_, std::move(memory), next_, row_count,
                              std::move(ahead), std::move(kept));
  next_ += row_count;
  return block;
}

SnapshotRows::Kept* SnapshotRows::OldestInMemory() {
  const auto oldest =
      std::find_if(kept_.begin(), kept_.end(),
                   [](const Kept& one) { return one.memory != nullptr; });
  return oldest == kept_.end() ? nullptr : &*oldest;
}

// Those of blocks that have been handed out come first, and are there already.
std::unique_ptr<SnapshotPiece> SnapshotRows::GoAhead(Kept& kept) {
  const int64_t first = static_cast<int64_t>(kept.places.size()) - kept.left;
  std::vector<int64_t> places(kept.places.begin() + first, kept.places.end());
  return std::make_unique<BeforeImages>(layout_,
                                        std::exchange(kept.memory, nullptr),
                                        first, kept.left, std::move(places));
}

absl::Status SnapshotRows::CopyBlock(int64_t row_count, std::byte* chunk) {
  if (source_.has_base) {
    std::vector<int64_t> places(static_cast<size_t>(row_count));
    std::iota(places.begin(), places.end(), next_);
    return Gather(places, chunk);
  }
  for (size_t c = 0; c < source_.columns.size(); ++c) {
    const int64_t row_bytes = layout_->columns()[c].row_bytes;
    ROWHOUSE_RETURN_IF_ERROR(source_.backend->Copy(
        static_cast<const char*>(source_.columns[c]) + next_ * row_bytes,
        chunk + layout_->offset(c), row_count * row_bytes));
  }
  return source_.backend->Synchronize();
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
      ROWHOUSE_ASSIGN_OR_RETURN(chunk, chunks_->Take(kBlockChunks));
      short_of_chunks_ = !chunk.has_value();
      if (short_of_chunks_) return false;
    }
    Mark(place);
    places.push_back(place);
    if (static_cast<int64_t>(places.size()) == layout_->block_row_count()) {
      ROWHOUSE_RETURN_IF_ERROR(
          Keep(std::exchange(places, {}), *std::move(chunk)));
      chunk.reset();
    }
  }
  if (chunk.has_value()) {
    ROWHOUSE_RETURN_IF_ERROR(Keep(std::move(places), *std::move(chunk)));
  }
  short_of_chunks_ = false;
  return true;
}

absl::Status SnapshotRows::Keep(std::vector<int64_t> places,
                                kernels::Buffer chunk) {
  auto memory = std::make_shared<ChunkMemory>(chunks_, std::move(chunk));
  std::sort(places.begin(), places.end());
  ROWHOUSE_RETURN_IF_ERROR(Gather(places, memory->data()));
  const auto row_count = static_cast<int64_t>(places.size());
  put_aside_count_ += row_count;
  Kept& kept =
      kept_.emplace_back(Kept{std::move(places), std::move(memory), row_count});
  const int64_t block = layout_->block_row_count();
  for (int64_t i = 0; i < row_count; ++i) {
    const int64_t place = kept.places[static_cast<size_t>(i)];
    kept_rows_[static_cast<size_t>(place / block)].push_back(
        {&kept, static_cast<int32_t>(i), static_cast<int32_t>(place % block)});
  }
  return absl::OkStatus();
}

absl::Status SnapshotRows::Gather(std::span<const int64_t> places,
                                  std::byte* chunk) {
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
        slots, chunk + layout_->offset(c)));
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
