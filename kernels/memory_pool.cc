#include "kernels/memory_pool.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace rowhouse::kernels {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kSlackBytes = 1 << 20;  // Lost by 4,096 buffers and more.

int64_t RoundUp(int64_t size_bytes) {
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::Status MemoryPool::SetAside(int64_t size_bytes) {
  if (size_bytes == 0) return absl::OkStatus();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() - kSlackBytes;
  MutexLock lock(mutex_);
  // Blocks that others' buffers keep from the source have room.
  const int64_t room = block_bytes_ - aside_bytes_ -
                       kSlackBytes * static_cast<int64_t>(blocks_.size());
  if (size_bytes <= room) {
    aside_bytes_ += size_bytes;
    return absl::OkStatus();
  }
  int64_t taken = size_bytes > kMost ? size_bytes : size_bytes + kSlackBytes;
  absl::StatusOr<Buffer> memory = source_(taken);
  if (!memory.ok() && room > 0) {
    taken -= room;
    memory = source_(taken);
  }
  if (!memory.ok()) return std::move(memory).status();
  aside_bytes_ += size_bytes;
  block_bytes_ += taken;
  std::byte* const first = memory->as<std::byte>();
  Block& block = blocks_[first];
  block.memory = *std::move(memory);
  block.free[0] = taken;
  return absl::OkStatus();
}

void MemoryPool::GiveBack(int64_t size_bytes) {
  MutexLock lock(mutex_);
  aside_bytes_ -= size_bytes;
  Trim();
}

absl::StatusOr<Buffer> MemoryPool::Allocate(int64_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  if (size_bytes < 0) return source_(size_bytes);  // Which refuses it.
  {
    MutexLock lock(mutex_);
    Block* best_block = nullptr;
    std::map<int64_t, int64_t>::iterator best;
    for (auto& [first, block] : blocks_) {
      for (auto piece = block.free.begin(); piece != block.free.end();
           ++piece) {
        if (piece->second < size_bytes) continue;
        if (best_block != nullptr && piece->second >= best->second) continue;
        best_block = &block;
        best = piece;
      }
    }
    if (best_block != nullptr) {
      const auto [offset, free_bytes] = *best;
      best_block->free.erase(best);
      const int64_t taken = RoundUp(size_bytes);
      if (free_bytes > taken) {
        best_block->free[offset + taken] = free_bytes - taken;
      }
      return Buffer(best_block->memory.as<std::byte>() + offset, size_bytes,
                    &Free, this);
    }
  }
  return source_(size_bytes);
}

int64_t MemoryPool::OffsetOf(const Buffer& buffer) const {
  auto* const data = buffer.as<std::byte>();
  MutexLock lock(mutex_);
  const auto after = blocks_.upper_bound(data);
  if (after == blocks_.begin()) return 0;
  const auto& [first, block] = *std::prev(after);
  const int64_t offset = data - first;
  return offset < block.memory.size_bytes() ? offset : 0;
}

void MemoryPool::Free(void* pool, void* data, int64_t size_bytes) {
  auto& self = *static_cast<MemoryPool*>(pool);
  MutexLock lock(self.mutex_);
  self.Insert(static_cast<std::byte*>(data), size_bytes);
  self.Trim();
}

void MemoryPool::Insert(std::byte* data, int64_t size_bytes) {
  Block& block = std::prev(blocks_.upper_bound(data))->second;
  int64_t offset = data - block.memory.as<std::byte>();
  // The last piece of a block may end before a multiple of the alignment.
  int64_t size =
      std::min(RoundUp(size_bytes), block.memory.size_bytes() - offset);
  auto next = block.free.lower_bound(offset);
  if (next != block.free.end() && next->first == offset + size) {
    size += next->second;
    next = block.free.erase(next);
  }
  if (next != block.free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  block.free[offset] = size;
}

void MemoryPool::Trim() {
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    const int64_t size = block->second.memory.size_bytes();
    if (block->second.unused() && block_bytes_ - size >= aside_bytes_) {
      block_bytes_ -= size;
      block = blocks_.erase(block);
    } else {
      ++block;
    }
  }
}

}  // namespace rowhouse::kernels
