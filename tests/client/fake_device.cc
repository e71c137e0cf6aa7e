#include "tests/client/fake_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"

namespace rowhouse::testing {
namespace {

constexpr int64_t kMemoryBytes = int64_t{64} << 20;

std::unique_ptr<kernels::Backend> MakeCpu() {
  return kernels::cpu::MakeCpuBackend(
      kernels::cpu::MakeThreadExecutor(/*thread_count=*/1));
}

std::byte* MapView(int file, int access) {
  void* const view =
      mmap(nullptr, kMemoryBytes, access, MAP_SHARED, file, /*offset=*/0);
  if (view == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(view);
}

// What a buffer of the pool is counted by.
struct Counted {
  kernels::Buffer buffer;
  std::atomic<int64_t>* held_bytes;
};

}  // namespace

FakeDevice::FakeDevice() : FailingBackend(MakeCpu()), cpu_(MakeCpu()) {
  const int file = memfd_create("fake device", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kMemoryBytes) != 0) std::abort();
  device_ = MapView(file, PROT_NONE);
  host_ = MapView(file, PROT_READ | PROT_WRITE);
  close(file);
  pool_ = std::make_unique<kernels::MemoryPool>(
      [this, used = false](
          int64_t size_bytes) mutable -> absl::StatusOr<kernels::Buffer> {
        if (std::exchange(used, true)) {
          return absl::ResourceExhaustedError(
              absl::StrCat("no ", size_bytes, " bytes of the device"));
        }
        return kernels::Buffer(device_, size_bytes,
                               [](void*, void*, int64_t) {});
      });
  EXPECT_TRUE(pool_->SetAside(kMemoryBytes - (int64_t{1} << 20)).ok());
}

FakeDevice::~FakeDevice() {
  EXPECT_EQ(held_bytes_, 0);
  pool_.reset();
  munmap(device_, kMemoryBytes);
  munmap(host_, kMemoryBytes);
}

int64_t FakeDevice::waiting_count() const {
  MutexLock lock(mutex_);
  int64_t count = 0;
  for (const auto& [thread, queue] : queues_) count += std::ssize(queue);
  return count;
}

bool FakeDevice::Holds(const void* data) const {
  return data >= device_ && data < device_ + kMemoryBytes;
}

template <typename T>
T* FakeDevice::Reach(T* data) const {
  if (!Holds(data)) return data;
  return reinterpret_cast<T*>(host_ + (reinterpret_cast<uintptr_t>(data) -
                                       reinterpret_cast<uintptr_t>(device_)));
}

template <typename T>
T* FakeDevice::Own(T* data) const {
  EXPECT_TRUE(Holds(data)) << "host memory, wanted the device's";
  return Reach(data);
}

kernels::RowTable FakeDevice::Reach(kernels::RowTable table) const {
  table.weights = Reach(table.weights);
  return table;
}

kernels::SignPool FakeDevice::Reach(kernels::SignPool pool) const {
  if (pool.words != nullptr) pool.words = Own(pool.words);
  return pool;
}

absl::StatusOr<kernels::Buffer> FakeDevice::Allocate(int64_t size_bytes) {
  absl::StatusOr<kernels::Buffer> buffer = AllocateUninitialized(size_bytes);
  if (buffer.ok() && size_bytes > 0) {
    std::memset(Reach(buffer->data()), 0, static_cast<size_t>(size_bytes));
  }
  return buffer;
}

absl::StatusOr<kernels::Buffer> FakeDevice::AllocateUninitialized(
    int64_t size_bytes) {
  if (fail_allocations) return absl::ResourceExhaustedError("no memory");
  if (size_bytes == 0) return kernels::Buffer();
  absl::StatusOr<kernels::Buffer> cut = pool_->Allocate(size_bytes);
  if (!cut.ok()) return cut;
  void* const data = cut->data();
  std::memset(Reach(data), 0xdd, static_cast<size_t>(size_bytes));
  held_bytes_ += size_bytes;
  return kernels::Buffer(
      data, size_bytes,
      [](void* owner, void*, int64_t freed_bytes) {
        const std::unique_ptr<Counted> counted(static_cast<Counted*>(owner));
        *counted->held_bytes -= freed_bytes;
      },
      new Counted{*std::move(cut), &held_bytes_});
}

absl::StatusOr<bool> FakeDevice::IsDeviceMemory(const void* data,
                                                int64_t size_bytes) {
  if (size_bytes == 0) return false;
  const bool first = Holds(data);
  const bool last = Holds(static_cast<const std::byte*>(data) + size_bytes - 1);
  if (first == last) return first;
  return absl::InvalidArgumentError(absl::StrCat(
      "a buffer of ", size_bytes, " bytes of which some are the device's"));
}

absl::Status FakeDevice::Enqueue(Work work) {
  MutexLock lock(mutex_);
  queues_[std::this_thread::get_id()].push_back(std::move(work));
  return absl::OkStatus();
}

absl::Status FakeDevice::Synchronize() {
  std::vector<Work> queue;
  {
    MutexLock lock(mutex_);
    queue = std::exchange(queues_[std::this_thread::get_id()], {});
  }
  if (fail_work) return absl::InternalError("the device fell off the bus");
  absl::Status status = absl::OkStatus();
  for (const Work& work : queue) status.Update(work());
  return status;
}

absl::Status FakeDevice::Copy(const void* from, void* to, int64_t size_bytes) {
  return Enqueue([this, from = Reach(from), to = Reach(to), size_bytes] {
    return cpu_->Copy(from, to, size_bytes);
  });
}

absl::Status FakeDevice::LoadEpoch(const int64_t* epoch, int64_t& value) {
  return Enqueue(
      [this, epoch, &value] { return cpu_->LoadEpoch(epoch, value); });
}

absl::Status FakeDevice::GatherRows(const kernels::RowTable& table,
                                    std::span<const int64_t> slots, void* out) {
  return Enqueue(
      [this, table = Reach(table), slots = Reach(slots), out = Reach(out)] {
        return cpu_->GatherRows(table, slots, out);
      });
}

absl::Status FakeDevice::GatherRowsTo(const kernels::RowTable& table,
                                      std::span<const int64_t> slots,
                                      std::span<const int64_t> positions,
                                      void* out) {
  return Enqueue([this, table = Reach(table), slots = Reach(slots),
                  positions = Reach(positions), out = Own(out)] {
    return cpu_->GatherRowsTo(table, slots, positions, out);
  });
}

absl::Status FakeDevice::PlaceRows(const kernels::HostPieces& rows,
                                   int64_t row_bytes,
                                   std::span<const int64_t> positions,
                                   void* out) {
  std::string together(static_cast<size_t>(rows.size_bytes()), '\0');
  kernels::PieceReader(rows).Copy(together.data(), rows.size_bytes());
  positions = Reach(positions);
  return Enqueue(
      [this, together = std::move(together), row_bytes,
       positions = std::vector<int64_t>(positions.begin(), positions.end()),
       out = Own(out)] {
        return cpu_->PlaceRows(together, row_bytes, positions, out);
      });
}

absl::Status FakeDevice::AddFloats(const float* from, float* to,
                                   int64_t count) {
  return Enqueue([this, from = Reach(from), to = Own(to), count] {
    return cpu_->AddFloats(from, to, count);
  });
}

absl::Status FakeDevice::NarrowFloats(const float* from, int64_t count,
                                      kernels::DType dtype, void* to) {
  if (count == 0) return absl::OkStatus();
  return Enqueue([this, from = Own(from), count, dtype, to = Own(to)] {
    return cpu_->NarrowFloats(from, count, dtype, to);
  });
}

absl::Status FakeDevice::NgramRowIds(std::span<const int32_t> tokens,
                                     int64_t table_row_count,
                                     std::span<int64_t> row_ids) {
  return Enqueue(
      [this, tokens = Own(tokens), table_row_count, row_ids = Own(row_ids)] {
        return cpu_->NgramRowIds(tokens, table_row_count, row_ids);
      });
}

absl::Status FakeDevice::NgramWantList(
    std::span<const std::span<const int32_t>> steps, int64_t table_row_count,
    std::span<int64_t> want, int64_t& want_count) {
  std::vector<std::span<const int32_t>> owned;
  for (const std::span<const int32_t> tokens : steps) {
    owned.push_back(Own(tokens));
  }
  return Enqueue([this, owned = std::move(owned), table_row_count,
                  want = Own(want), &want_count] {
    return cpu_->NgramWantList(owned, table_row_count, want, want_count);
  });
}

absl::Status FakeDevice::FindSlots(std::span<const int64_t> want,
                                   std::span<const int64_t> row_ids,
                                   std::span<int64_t> slots,
                                   int64_t& first_missing) {
  return Enqueue([this, want = Own(want), row_ids = Own(row_ids),
                  slots = Own(slots), &first_missing] {
    return cpu_->FindSlots(want, row_ids, slots, first_missing);
  });
}

absl::Status FakeDevice::NgramEmbedForward(const void* cache,
                                           kernels::DType dtype, int64_t dim,
                                           std::span<const int32_t> tokens,
                                           std::span<const int64_t> slots,
                                           const kernels::SignPool& pool,
                                           void* out) {
  if (tokens.empty()) return absl::OkStatus();
  return Enqueue([this, cache = Own(cache), dtype, dim, tokens = Own(tokens),
                  slots = Own(slots), pool = Reach(pool), out = Own(out)] {
    return cpu_->NgramEmbedForward(cache, dtype, dim, tokens, slots, pool, out);
  });
}

absl::Status FakeDevice::SumNgramGradients(
    std::span<const kernels::NgramStep> steps, kernels::DType gradient_dtype,
    int64_t dim, const kernels::SignPool& pool, int64_t slot_count,
    kernels::DType wire_dtype, void* out) {
  if (slot_count == 0) return absl::OkStatus();
  std::vector<kernels::NgramStep> reached(steps.begin(), steps.end());
  for (kernels::NgramStep& step : reached) {
    step.tokens = Own(step.tokens);
    step.slots = Own(step.slots);
    if (!step.tokens.empty()) step.gradient = Own(step.gradient);
  }
  return Enqueue([this, reached = std::move(reached), gradient_dtype, dim,
                  pool = Reach(pool), slot_count, wire_dtype, out = Own(out)] {
    return cpu_->SumNgramGradients(reached, gradient_dtype, dim, pool,
                                   slot_count, wire_dtype, out);
  });
}

}  // namespace rowhouse::testing
