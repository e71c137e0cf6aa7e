#ifndef ROWHOUSE_TESTS_CLIENT_FAKE_DEVICE_H_
#define ROWHOUSE_TESTS_CLIENT_FAKE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "kernels/backend.h"
#include "kernels/memory_pool.h"
#include "kernels/mutex.h"
#include "tests/server/shard/failing_backend.h"

namespace rowhouse::testing {

/// A device that is none, as clients use one. Its memory has addresses of its
/// own, which fault when the host touches them; and what a thread asks for is
/// done when that thread synchronizes, and not before. The bits are a CPU's.
///
/// Thread-safe.
class FakeDevice final : public FailingBackend {
 public:
  FakeDevice();
  ~FakeDevice() override;

  /// Synchronizing fails, and drops the thread's work.
  std::atomic<bool> fail_work = false;

  /// Calls that no `Synchronize` has waited for.
  int64_t waiting_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  /// Bytes of device memory that buffers hold.
  int64_t held_bytes() const { return held_bytes_; }

  absl::StatusOr<kernels::Buffer> Allocate(int64_t size_bytes) override;
  absl::StatusOr<kernels::Buffer> AllocateUninitialized(
      int64_t size_bytes) override;
  absl::StatusOr<bool> IsDeviceMemory(const void* data,
                                      int64_t size_bytes) override;
  absl::Status Copy(const void* from, void* to, int64_t size_bytes) override;
  absl::Status Synchronize() override;
  absl::Status LoadEpoch(const int64_t* epoch, int64_t& value) override;
  absl::Status GatherRows(const kernels::RowTable& table,
                          std::span<const int64_t> slots, void* out) override;
  absl::Status GatherRowsTo(const kernels::RowTable& table,
                            std::span<const int64_t> slots,
                            std::span<const int64_t> positions,
                            void* out) override;
  absl::Status PlaceRows(const kernels::HostPieces& rows, int64_t row_bytes,
                         std::span<const int64_t> positions,
                         void* out) override;
  absl::Status AddFloats(const float* from, float* to, int64_t count) override;
  absl::Status NarrowFloats(const float* from, int64_t count,
                            kernels::DType dtype, void* to) override;
  absl::Status NgramRowIds(std::span<const int32_t> tokens,
                           int64_t table_row_count,
                           std::span<int64_t> row_ids) override;
  absl::Status NgramWantList(std::span<const std::span<const int32_t>> steps,
                             int64_t table_row_count, std::span<int64_t> want,
                             int64_t& want_count) override;
  absl::Status FindSlots(std::span<const int64_t> want,
                         std::span<const int64_t> row_ids,
                         std::span<int64_t> slots,
                         int64_t& first_missing) override;
  absl::Status NgramEmbedForward(const void* cache, kernels::DType dtype,
                                 int64_t dim, std::span<const int32_t> tokens,
                                 std::span<const int64_t> slots,
                                 const kernels::SignPool& pool,
                                 void* out) override;
  absl::Status SumNgramGradients(std::span<const kernels::NgramStep> steps,
                                 kernels::DType gradient_dtype, int64_t dim,
                                 const kernels::SignPool& pool,
                                 int64_t slot_count, kernels::DType wire_dtype,
                                 void* out) override;

 private:
  using Work = std::function<absl::Status()>;

  bool Holds(const void* data) const;
  // Where the host finds device memory; other memory stays itself.
  template <typename T>
  T* Reach(T* data) const;
  template <typename T>
  std::span<T> Reach(std::span<T> values) const {
    return {Reach(values.data()), values.size()};
  }
  kernels::RowTable Reach(kernels::RowTable table) const;
  kernels::SignPool Reach(kernels::SignPool pool) const;
  // The same of what must be device memory.
  template <typename T>
  T* Own(T* data) const;
  template <typename T>
  std::span<T> Own(std::span<T> values) const {
    if (values.empty()) return values;
    return {Own(values.data()), values.size()};
  }
  absl::Status Enqueue(Work work) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<kernels::Backend> cpu_;
  std::byte* device_ = nullptr;  // The same memory: one view faults,
  std::byte* host_ = nullptr;    // the other does not.
  std::unique_ptr<kernels::MemoryPool> pool_;
  std::atomic<int64_t> held_bytes_ = 0;
  mutable Mutex mutex_;
  std::map<std::thread::id, std::vector<Work>> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_FAKE_DEVICE_H_
