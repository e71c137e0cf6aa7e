#include "kernels/cpu/scratch.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/memory.h"

namespace rowhouse::kernels::cpu {
namespace {

// Buffers that the bodies of one loop share.
class LoopScratch {
 public:
  explicit LoopScratch(ScratchPool& pool) : pool_(pool) {}
  ~LoopScratch() {
    MutexLock lock(mutex_);
    for (Buffer& buffer : free_) pool_.Return(std::move(buffer));
  }
  LoopScratch(const LoopScratch&) = delete;
  LoopScratch& operator=(const LoopScratch&) = delete;

  absl::Status Fill(int64_t count, int64_t size_bytes) {
    MutexLock lock(mutex_);
    for (int64_t i = 0; i < count; ++i) {
      absl::StatusOr<Buffer> buffer = pool_.Borrow(size_bytes);
      if (!buffer.ok()) return buffer.status();
      free_.push_back(*std::move(buffer));
    }
    return absl::OkStatus();
  }

  Buffer Take() {
    MutexLock lock(mutex_);
    while (free_.empty()) returned_.Wait(mutex_);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  void Return(Buffer buffer) {
    MutexLock lock(mutex_);
    free_.push_back(std::move(buffer));
    returned_.SignalOne();
  }

 private:
  ScratchPool& pool_;
  Mutex mutex_;
  CondVar returned_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<Buffer> ScratchPool::Borrow(int64_t size_bytes) {
  {
    MutexLock lock(mutex_);
    if (!free_.empty()) {
      Buffer buffer = std::move(free_.back());
      free_.pop_back();
      if (buffer.size_bytes() >= size_bytes) return buffer;
    }
  }
  return AllocateMemory(size_bytes);
}

void ScratchPool::Return(Buffer buffer) {
  MutexLock lock(mutex_);
  free_.push_back(std::move(buffer));
}

absl::Status ForEachBlock(
    Executor& executor, ScratchPool& pool, int64_t block_count,
    int64_t scratch_floats,
    absl::FunctionRef<void(int64_t block, float* scratch)> body) {
  LoopScratch shared(pool);
  absl::Status filled =
      shared.Fill(std::min<int64_t>(block_count, executor.concurrency()),
                  scratch_floats * int64_t{sizeof(float)});
  if (!filled.ok()) return filled;
  executor.ParallelFor(block_count, 1, [&](int64_t begin, int64_t end) {
    Buffer scratch = shared.Take();
    for (int64_t block = begin; block < end; ++block) {
      body(block, scratch.as<float>());
    }
    shared.Return(std::move(scratch));
  });
  return absl::OkStatus();
}

}  // namespace rowhouse::kernels::cpu
