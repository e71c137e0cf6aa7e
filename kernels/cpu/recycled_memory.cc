#include "kernels/cpu/recycled_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "kernels/cpu/memory.h"

namespace rowhouse::kernels::cpu {
namespace {

// Of a kept buffer so much may lie idle: a quarter of what is asked for.
int64_t MostFor(int64_t size_bytes) { return size_bytes + size_bytes / 4; }

}  // namespace

absl::StatusOr<Buffer> RecycledMemory::Allocate(int64_t size_bytes) {
  if (size_bytes <= 0) return AllocateMemory(size_bytes);
  {
    MutexLock lock(mutex_);
    const auto found = kept_.lower_bound(size_bytes);
    if (found != kept_.end() && found->first <= MostFor(size_bytes)) {
      Buffer buffer = std::move(found->second);
      kept_bytes_ -= found->first;
      kept_.erase(found);
      return Hand(std::move(buffer), size_bytes);
    }
  }
  absl::StatusOr<Buffer> made = AllocateMemory(size_bytes);
  if (!made.ok()) return made;
  MutexLock lock(mutex_);
  return Hand(*std::move(made), size_bytes);
}

Buffer RecycledMemory::Hand(Buffer buffer, int64_t size_bytes) {
  used_bytes_ += buffer.size_bytes();
  most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
  void* const data = buffer.data();
  used_.emplace(data, std::move(buffer));
  return Buffer(data, size_bytes, &Free, this);
}

void RecycledMemory::Free(void* memory, void* data, int64_t) {
  static_cast<RecycledMemory*>(memory)->Keep(data);
}

void RecycledMemory::Keep(void* data) {
  std::vector<Buffer> dropped;  // Unmapped without the lock.
  MutexLock lock(mutex_);
  auto used = used_.extract(data);
  const int64_t size_bytes = used.mapped().size_bytes();
  used_bytes_ -= size_bytes;
  kept_bytes_ += size_bytes;
  kept_.emplace(size_bytes, std::move(used.mapped()));
  while (used_bytes_ + kept_bytes_ > most_used_bytes_) {
    const auto largest = std::prev(kept_.end());
    kept_bytes_ -= largest->first;
    dropped.push_back(std::move(largest->second));
    kept_.erase(largest);
  }
}

void RecycledMemory::Drop() {
  std::multimap<int64_t, Buffer> dropped;
  MutexLock lock(mutex_);
  std::swap(dropped, kept_);
  kept_bytes_ = 0;
  most_used_bytes_ = used_bytes_;
}

}  // namespace rowhouse::kernels::cpu
