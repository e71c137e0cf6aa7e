#include "proto/wire/block_pool.h"

#include <mutex>
#include <utility>
#include <vector>

namespace rowhouse::wire {

struct BlockPool::State {
  const Source source;
  std::mutex mutex;
  // Of which each names no pool while it is free.
  std::vector<std::unique_ptr<Block::Used>> free;
  int64_t block_count = 0;
};

struct BlockPool::Block::Used {
  Memory memory;
  std::shared_ptr<State> pool;
  std::shared_ptr<void> held;
};

BlockPool::BlockPool(Source source)
    : state_(new State{std::move(source), {}, {}, 0}) {}

absl::StatusOr<BlockPool::Block> BlockPool::Take(std::shared_ptr<void> held) {
  std::unique_ptr<Block::Used> used;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->free.empty()) {
      used = std::move(state_->free.back());
      state_->free.pop_back();
    }
  }
  if (used == nullptr) {
    absl::StatusOr<Memory> memory = state_->source();
    if (!memory.ok()) return std::move(memory).status();
    used = std::make_unique<Block::Used>();
    used->memory = *std::move(memory);
    const std::lock_guard lock(state_->mutex);
    ++state_->block_count;
  }
  used->pool = state_;
  used->held = std::move(held);
  return Block(std::move(used));
}

int64_t BlockPool::block_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->block_count;
}

int64_t BlockPool::used_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->block_count - static_cast<int64_t>(state_->free.size());
}

void BlockPool::Block::PutBack::operator()(Used* used) const {
  const std::shared_ptr<State> pool = std::move(used->pool);
  // Only after the block is free, so that whoever waits for it finds it.
  const std::shared_ptr<void> held = std::move(used->held);
  const std::lock_guard lock(pool->mutex);
  pool->free.emplace_back(used);
}

std::byte* BlockPool::Block::data() const { return used_->memory.get(); }

grpc::Slice BlockPool::Block::ToSlice(int64_t size_bytes) && {
  std::byte* const bytes = data();
  return grpc::Slice(
      bytes, static_cast<size_t>(size_bytes),
      [](void* used) { PutBack()(static_cast<Used*>(used)); }, used_.release());
}

}  // namespace rowhouse::wire
