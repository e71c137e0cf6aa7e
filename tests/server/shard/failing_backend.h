#ifndef ROWHOUSE_TESTS_SERVER_SHARD_FAILING_BACKEND_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_FAILING_BACKEND_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rowhouse::testing {

/// A backend on host memory that gives out, or whose memory does, when a test
/// says so; and that counts. Sparse rows only.
class FailingBackend : public kernels::Backend {
 public:
  explicit FailingBackend(std::unique_ptr<kernels::Backend> real)
      : real_(std::move(real)) {}

  std::atomic<bool> fail_events = false;
  std::atomic<bool> fail_allocations = false;
  std::atomic<bool> fail_scratch = false;

  /// Bytes set aside, and entries that the latest scratch is for.
  std::atomic<int64_t> aside_bytes = 0;
  std::atomic<int64_t> scratch_entry_count = 0;

  /// Bytes allocated and not yet freed, of all such backends: a buffer does not
  /// tell which one it is of.
  static inline std::atomic<int64_t> live_bytes = 0;

  std::string Description() const override { return real_->Description(); }

  absl::StatusOr<kernels::Buffer> AllocateUninitialized(
      int64_t size_bytes) override {
    return Allocate(size_bytes);
  }
  absl::StatusOr<kernels::Buffer> AllocateHost(int64_t size_bytes) override {
    return real_->AllocateHost(size_bytes);
  }
  absl::StatusOr<kernels::Buffer> Allocate(int64_t size_bytes) override {
    if (fail_allocations) return absl::ResourceExhaustedError("no memory");
    live_bytes += size_bytes;
    const auto size = static_cast<size_t>(size_bytes);
    void* const zeroed = std::memset(::operator new(size, kAlignment), 0, size);
    return kernels::Buffer(zeroed, size_bytes,
                           [](void*, void* data, int64_t freed_bytes) {
                             live_bytes -= freed_bytes;
                             ::operator delete(data, kAlignment);
                           });
  }
  absl::StatusOr<kernels::MemoryState> Memory() override {
    return real_->Memory();
  }
  absl::Status SetAside(int64_t size_bytes) override {
    if (fail_allocations) return absl::ResourceExhaustedError("no memory");
    aside_bytes += size_bytes;
    return absl::OkStatus();
  }
  void GiveBack(int64_t size_bytes) override { aside_bytes -= size_bytes; }
  absl::StatusOr<kernels::Buffer> AllocateShared(int64_t size_bytes) override {
    return real_->AllocateShared(size_bytes);
  }
  absl::StatusOr<kernels::SharedMemory> Share(
      const kernels::Buffer& buffer) override {
    return real_->Share(buffer);
  }
  absl::StatusOr<kernels::Buffer> Map(const kernels::SharedMemory& memory,
                                      kernels::MapAccess access) override {
    return real_->Map(memory, access);
  }
  absl::Status StoreEpoch(int64_t* epoch, int64_t value) override {
    return real_->StoreEpoch(epoch, value);
  }
  absl::Status LoadEpoch(const int64_t* epoch, int64_t& value) override {
    return real_->LoadEpoch(epoch, value);
  }
  absl::Status ReserveScratch(const kernels::ScratchNeeds& needs) override {
    if (fail_scratch) return absl::ResourceExhaustedError("no scratch");
    scratch_entry_count = needs.entry_count;
    return absl::OkStatus();
  }
  absl::Status Copy(const void* from, void* to, int64_t size_bytes) override {
    return real_->Copy(from, to, size_bytes);
  }
  absl::Status Synchronize() override { return real_->Synchronize(); }
  absl::Status InitializeRows(const kernels::RowTable& table,
                              const kernels::Initializer& initializer,
                              bool fresh) override {
    return real_->InitializeRows(table, initializer, fresh);
  }
  absl::Status GatherRows(const kernels::RowTable& table,
                          std::span<const int64_t> slots, void* out) override {
    gather_count += 1;
    return real_->GatherRows(table, slots, out);
  }
  std::atomic<int> gather_count = 0;
  absl::Status GatherRowsTo(const kernels::RowTable& table,
                            std::span<const int64_t> slots,
                            std::span<const int64_t> positions,
                            void* out) override {
    return real_->GatherRowsTo(table, slots, positions, out);
  }
  absl::Status PlaceRows(const kernels::HostPieces& rows, int64_t row_bytes,
                         std::span<const int64_t> positions,
                         void* out) override {
    return real_->PlaceRows(rows, row_bytes, positions, out);
  }
  absl::StatusOr<bool> IsDeviceMemory(const void* data,
                                      int64_t size_bytes) override {
    return real_->IsDeviceMemory(data, size_bytes);
  }

  absl::Status WriteRows(const kernels::RowTable& table, int64_t first_slot,
                         int64_t row_count, const void* rows) override {
    return real_->WriteRows(table, first_slot, row_count, rows);
  }
  absl::Status ApplyRowAdamEvent(const kernels::RowTable& table,
                                 const kernels::RowAdamEvent& event,
                                 kernels::EventReport& report) override {
    if (fail_events) return absl::DataLossError("the device fell off the bus");
    return real_->ApplyRowAdamEvent(table, event, report);
  }
  absl::Status BringCurrent(const kernels::RowTable& table,
                            const kernels::Beta2History& history,
                            std::span<const int64_t> slots) override {
    bring_current_count += 1;
    return real_->BringCurrent(table, history, slots);
  }
  std::atomic<int> bring_current_count = 0;

  absl::Status MergedStatistics(
      std::span<const kernels::GradientPart> parts, int64_t dim,
      kernels::DType gradient_dtype,
      kernels::GradientStatistics& statistics) override {
    return real_->MergedStatistics(parts, dim, gradient_dtype, statistics);
  }
  absl::Status Digest(const kernels::RowTable& table,
                      const kernels::Beta2History& history,
                      uint64_t& sum) override {
    return real_->Digest(table, history, sum);
  }
  absl::Status LandRows(const kernels::HostPieces& from, void* to,
                        int64_t row_count, int64_t dim, kernels::DType dtype,
                        int64_t first_position, kernels::ContentSum& content,
                        kernels::RowScan& scan) override {
    return real_->LandRows(from, to, row_count, dim, dtype, first_position,
                           content, scan);
  }

  // What shards of sparse tables do not use.
  absl::Status InitializeDense(const kernels::DenseTable&,
                               const kernels::Initializer&, bool) override {
    return Unused();
  }
  absl::Status WriteDenseRows(const kernels::DenseTable&, int64_t, int64_t,
                              const void*) override {
    return Unused();
  }
  absl::Status ClearMainGrad(const kernels::DenseTable&) override {
    return Unused();
  }
  absl::Status AccumulateEmbeddingGradient(
      const kernels::MainGrad&, const kernels::EmbeddingGradient&) override {
    return Unused();
  }
  absl::Status ApplyAdamW(const kernels::DenseTable&,
                          const kernels::AdamWFactors&,
                          kernels::NonFinitePolicy,
                          kernels::EventReport&) override {
    return Unused();
  }
  absl::Status DenseStatistics(const kernels::DenseTable&,
                               kernels::GradientStatistics&) override {
    return Unused();
  }
  absl::Status DenseDigest(const kernels::DenseTable&, uint64_t&) override {
    return Unused();
  }
  absl::Status HeadTokenStatistics(const kernels::HeadSlice&,
                                   const kernels::HeadInputs&,
                                   const kernels::HeadBlocks&,
                                   const kernels::HeadStatistics&) override {
    return Unused();
  }
  absl::Status HeadHiddenGradient(const kernels::HeadSlice&,
                                  const kernels::HeadInputs&,
                                  const kernels::HeadMerged&,
                                  const kernels::HeadBlocks&,
                                  std::span<std::byte>, float*) override {
    return Unused();
  }
  absl::Status HeadWeightGradient(const kernels::HeadSlice&,
                                  const kernels::HeadInputs&,
                                  const kernels::HeadMerged&,
                                  const kernels::HeadBlocks&,
                                  std::span<const std::byte>,
                                  const kernels::MainGrad&, float*) override {
    return Unused();
  }
  absl::Status AddFloats(const float*, float*, int64_t) override {
    return Unused();
  }
  absl::Status NarrowFloats(const float*, int64_t, kernels::DType,
                            void*) override {
    return Unused();
  }
  absl::Status NgramRowIds(std::span<const int32_t>, int64_t,
                           std::span<int64_t>) override {
    return Unused();
  }
  absl::Status NgramWantList(std::span<const std::span<const int32_t>>, int64_t,
                             std::span<int64_t>, int64_t&) override {
    return Unused();
  }
  absl::Status FindSlots(std::span<const int64_t>, std::span<const int64_t>,
                         std::span<int64_t>, int64_t&) override {
    return Unused();
  }
  absl::Status NgramEmbedForward(const void*, kernels::DType, int64_t,
                                 std::span<const int32_t>,
                                 std::span<const int64_t>,
                                 const kernels::SignPool&, void*) override {
    return Unused();
  }
  absl::Status NgramEmbedBackward(const void*, kernels::DType, int64_t,
                                  std::span<const int32_t>,
                                  const kernels::SignPool&, void*) override {
    return Unused();
  }
  absl::Status SumNgramGradients(std::span<const kernels::NgramStep>,
                                 kernels::DType, int64_t,
                                 const kernels::SignPool&, int64_t,
                                 kernels::DType, void*) override {
    return Unused();
  }

 private:
  static constexpr auto kAlignment = std::align_val_t{256};

  static absl::Status Unused() {
    return absl::UnimplementedError("a sparse shard called it");
  }

  std::unique_ptr<kernels::Backend> real_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_FAILING_BACKEND_H_
