#include "kernels/cuda/cuda_backend.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/dense.h"
#include "kernels/cuda/epoch.h"
#include "kernels/cuda/floats.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/head.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/ngram.h"
#include "kernels/cuda/scratch_bytes.h"
#include "kernels/cuda/shared_memory.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/memory_pool.h"
#include "kernels/mutex.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kLeastMajor = 8;  // Asynchronous copies, bf16 arithmetic.

// Threads that reserved scratch, as a table's does that works on it, share no
// stream with others: those land parts meanwhile.
constexpr size_t kReserved = 8;
constexpr size_t kOthers = 8;

// The place of the calling thread among those that share a counter.
class StreamPlace {
 public:
  static size_t& OfThread() {
    static std::atomic<size_t> next = 0;
    thread_local size_t mine =
        kReserved + next.fetch_add(1, std::memory_order_relaxed) % kOthers;
    return mine;
  }

  static void Reserve() {
    static std::atomic<size_t> next = 0;
    size_t& mine = OfThread();
    if (mine < kReserved) return;
    mine = next.fetch_add(1, std::memory_order_relaxed) % kReserved;
  }
};

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int device) : device_(device) {}

  absl::Status Create() {
    cudaDeviceProp properties;
    absl::Status read = ToStatus(cudaGetDeviceProperties(&properties, device_),
                                 "reading the device's properties");
    if (!read.ok()) return read;
    name_ = properties.name;
    if (properties.major < kLeastMajor) {
      return absl::FailedPreconditionError(
          absl::StrCat("the CUDA device ", name_, " has compute capability ",
                       properties.major, ".", properties.minor,
                       "; it must be at least ", kLeastMajor, ".0"));
    }
    for (Queue& queue : queues_) {
      absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Create();
      if (!stream.ok()) return std::move(stream).status();
      queue.stream = *std::move(stream);
    }
    return absl::OkStatus();
  }

  std::string Description() const override {
    return absl::StrCat("cuda, ", name_, ", cuBLASLt ", cublasLtGetVersion());
  }

  absl::StatusOr<Buffer> Allocate(int64_t size_bytes) override {
    Buffer buffer;
    absl::Status done = Run([&](Stream& stream) {
      absl::StatusOr<Buffer> allocated = pool_.Allocate(size_bytes);
      if (!allocated.ok()) return std::move(allocated).status();
      buffer = *std::move(allocated);
      if (size_bytes == 0) return absl::OkStatus();
      absl::Status cleared = ToStatus(
          cudaMemsetAsync(buffer.data(), 0, static_cast<size_t>(size_bytes),
                          stream.get()),
          "clearing memory");
      // Any thread may use it now.
      return cleared.ok() ? stream.Synchronize() : cleared;
    });
    if (!done.ok()) return done;
    return buffer;
  }

  absl::StatusOr<Buffer> AllocateUninitialized(int64_t size_bytes) override {
    absl::StatusOr<Buffer> allocated;
    absl::Status done = Run([&](Stream&) {
      allocated = pool_.Allocate(size_bytes);
      return allocated.status();
    });
    if (!done.ok()) return done;
    return allocated;
  }

  absl::StatusOr<Buffer> AllocateHost(int64_t size_bytes) override {
    if (size_bytes == 0) return Buffer();
    absl::StatusOr<Buffer> allocated;
    absl::Status done = Run([&](Stream&) {
      allocated = AllocatePinned(size_bytes);
      return allocated.status();
    });
    if (!done.ok()) return done;
    return allocated;
  }

  absl::StatusOr<MemoryState> Memory() override {
    absl::StatusOr<MemoryState> state;
    absl::Status read = Run([&](Stream&) {
      state = DeviceMemory();
      return state.status();
    });
    if (!read.ok()) return read;
    return state;
  }

  absl::Status SetAside(int64_t size_bytes) override {
    return Run([&](Stream&) { return pool_.SetAside(size_bytes); });
  }

  void GiveBack(int64_t size_bytes) override {
    Run([&](Stream&) {
      pool_.GiveBack(size_bytes);
      return absl::OkStatus();
    }).IgnoreError();  // A device that is at fault has nothing to give.
  }

  absl::Status ReserveScratch(const ScratchNeeds& needs) override {
    StreamPlace::Reserve();
    return RunWithGemm([&](Stream& stream, Gemm& gemm) {
      absl::Status reserved = stream.GrowScratch(ScratchBytes(needs));
      if (!reserved.ok() || !needs.head.has_value()) return reserved;
      return gemm.Make();
    });
  }

  absl::Status Copy(const void* from, void* to, int64_t size_bytes) override {
    if (size_bytes == 0) return absl::OkStatus();
    return Run([&](Stream& stream) {
      return ToStatus(cudaMemcpyAsync(to, from, static_cast<size_t>(size_bytes),
                                      cudaMemcpyDefault, stream.get()),
                      "copying");
    });
  }

  absl::StatusOr<bool> IsDeviceMemory(const void* data,
                                      int64_t size_bytes) override {
    return IsMemoryOf(device_, data, size_bytes);
  }

  absl::Status Synchronize() override {
    return Run([](Stream& stream) { return stream.Synchronize(); });
  }

  absl::StatusOr<Buffer> AllocateShared(int64_t size_bytes) override {
    return Allocate(SharedBytes(size_bytes));
  }

  absl::StatusOr<SharedMemory> Share(const Buffer& buffer) override {
    absl::StatusOr<SharedMemory> shared;
    absl::Status done = Run([&](Stream&) {
      shared = NameMemory(buffer, pool_.OffsetOf(buffer));
      return shared.status();
    });
    if (!done.ok()) return done;
    return shared;
  }

  absl::StatusOr<Buffer> Map(const SharedMemory& memory, MapAccess) override {
    absl::StatusOr<Buffer> mapped;
    absl::Status done = Run([&](Stream&) {
      mapped = MapMemory(memory, device_);
      return mapped.status();
    });
    if (!done.ok()) return done;
    return mapped;
  }

  absl::Status StoreEpoch(int64_t* epoch, int64_t value) override {
    return Run([&](Stream& stream) {
      return ToStatus(LaunchStoreEpoch(epoch, value, stream.get()),
                      "storing an epoch");
    });
  }

  absl::Status LoadEpoch(const int64_t* epoch, int64_t& value) override {
    return Run([&](Stream& stream) {
      absl::StatusOr<int64_t*> found = stream.NewHostResult<int64_t>(
          [&value](int64_t loaded) { value = loaded; });
      if (!found.ok()) return std::move(found).status();
      return ToStatus(LaunchLoadEpoch(epoch, *found, stream.get()),
                      "loading an epoch");
    });
  }

  absl::Status InitializeRows(const RowTable& table,
                              const Initializer& initializer,
                              bool fresh) override {
    return Run([&](Stream& stream) {
      return cuda::InitializeRows(stream, table, initializer, fresh);
    });
  }

  absl::Status GatherRows(const RowTable& table, std::span<const int64_t> slots,
                          void* out) override {
    return Run([&](Stream& stream) {
      return cuda::GatherRows(stream, table, slots, out);
    });
  }

  absl::Status GatherRowsTo(const RowTable& table,
                            std::span<const int64_t> slots,
                            std::span<const int64_t> positions,
                            void* out) override {
    return Run([&](Stream& stream) {
      return cuda::GatherRowsTo(stream, table, slots, positions, out);
    });
  }

  absl::Status PlaceRows(const HostPieces& rows, int64_t row_bytes,
                         std::span<const int64_t> positions,
                         void* out) override {
    return Run([&](Stream& stream) {
      return cuda::PlaceRows(stream, rows, row_bytes, positions, out);
    });
  }

  absl::Status WriteRows(const RowTable& table, int64_t first_slot,
                         int64_t row_count, const void* rows) override {
    return Run([&](Stream& stream) {
      return cuda::WriteRows(stream, table, first_slot, row_count, rows);
    });
  }

  absl::Status ApplyRowAdamEvent(const RowTable& table,
                                 const RowAdamEvent& event,
                                 EventReport& report) override {
    return Run([&](Stream& stream) {
      return cuda::ApplyRowAdamEvent(stream, table, event, report);
    });
  }

  absl::Status BringCurrent(const RowTable& table, const Beta2History& history,
                            std::span<const int64_t> slots) override {
    return Run([&](Stream& stream) {
      return cuda::BringCurrent(stream, table, history, slots);
    });
  }

  absl::Status MergedStatistics(std::span<const GradientPart> parts,
                                int64_t dim, DType gradient_dtype,
                                GradientStatistics& statistics) override {
    return Run([&](Stream& stream) {
      return cuda::MergedStatistics(stream, parts, dim, gradient_dtype,
                                    statistics);
    });
  }

  absl::Status Digest(const RowTable& table, const Beta2History& history,
                      uint64_t& sum) override {
    return Run([&](Stream& stream) {
      return cuda::Digest(stream, table, history, sum);
    });
  }

  absl::Status InitializeDense(const DenseTable& table,
                               const Initializer& initializer,
                               bool fresh) override {
    return Run([&](Stream& stream) {
      return cuda::InitializeDense(stream, table, initializer, fresh);
    });
  }

  absl::Status WriteDenseRows(const DenseTable& table, int64_t first_slot,
                              int64_t row_count, const void* rows) override {
    return Run([&](Stream& stream) {
      return cuda::WriteDenseRows(stream, table, first_slot, row_count, rows);
    });
  }

  absl::Status ClearMainGrad(const DenseTable& table) override {
    return Run(
        [&](Stream& stream) { return cuda::ClearMainGrad(stream, table); });
  }

  absl::Status AccumulateEmbeddingGradient(
      const MainGrad& main_grad, const EmbeddingGradient& gradient) override {
    return Run([&](Stream& stream) {
      return cuda::AccumulateEmbeddingGradient(stream, main_grad, gradient);
    });
  }

  absl::Status ApplyAdamW(const DenseTable& table, const AdamWFactors& factors,
                          NonFinitePolicy policy,
                          EventReport& report) override {
    return Run([&](Stream& stream) {
      return cuda::ApplyAdamW(stream, table, factors, policy, report);
    });
  }

  absl::Status DenseStatistics(const DenseTable& table,
                               GradientStatistics& statistics) override {
    return Run([&](Stream& stream) {
      return cuda::DenseStatistics(stream, table, statistics);
    });
  }

  absl::Status DenseDigest(const DenseTable& table, uint64_t& sum) override {
    return Run(
        [&](Stream& stream) { return cuda::DenseDigest(stream, table, sum); });
  }

  absl::Status HeadTokenStatistics(const HeadSlice& slice,
                                   const HeadInputs& inputs,
                                   const HeadBlocks& blocks,
                                   const HeadStatistics& statistics) override {
    return KeepHeadTokenStatistics(slice, inputs, blocks, {}, statistics);
  }

  absl::Status KeepHeadTokenStatistics(
      const HeadSlice& slice, const HeadInputs& inputs,
      const HeadBlocks& blocks, std::span<std::byte> kept,
      const HeadStatistics& statistics) override {
    return RunWithGemm([&](Stream& stream, Gemm& gemm) {
      return cuda::HeadTokenStatistics(stream, gemm, slice, inputs, blocks,
                                       statistics, kept);
    });
  }

  absl::Status HeadHiddenGradient(const HeadSlice& slice,
                                  const HeadInputs& inputs,
                                  const HeadMerged& merged,
                                  const HeadBlocks& blocks,
                                  std::span<std::byte> kept,
                                  float* hidden_gradient) override {
    return RunWithGemm([&](Stream& stream, Gemm& gemm) {
      return cuda::HeadHiddenGradient(stream, gemm, slice, inputs, merged,
                                      blocks, kept, /*has_logits=*/false,
                                      hidden_gradient);
    });
  }

  absl::Status KeptHeadHiddenGradient(const HeadSlice& slice,
                                      const HeadInputs& inputs,
                                      const HeadMerged& merged,
                                      const HeadBlocks& blocks,
                                      std::span<std::byte> kept,
                                      float* hidden_gradient) override {
    return RunWithGemm([&](Stream& stream, Gemm& gemm) {
      return cuda::HeadHiddenGradient(stream, gemm, slice, inputs, merged,
                                      blocks, kept, /*has_logits=*/true,
                                      hidden_gradient);
    });
  }

  absl::Status HeadGradients(const HeadSlice& slice, const HeadInputs& inputs,
                             const HeadMerged& merged, const HeadBlocks& blocks,
                             std::span<std::byte> kept, float* hidden_gradient,
                             const MainGrad& main_grad,
                             float* bias_grad) override {
    return RunWithGemm([&](Stream& stream, Gemm& gemm) {
      return cuda::HeadGradients(stream, gemm, slice, inputs, merged, blocks,
                                 kept, hidden_gradient, main_grad, bias_grad);
    });
  }

  absl::Status HeadWeightGradient(const HeadSlice& slice,
                                  const HeadInputs& inputs,
                                  const HeadMerged& merged,
                                  const HeadBlocks& blocks,
                                  std::span<const std::byte> kept,
                                  const MainGrad& main_grad,
                                  float* bias_grad) override {
    return RunWithGemm([&](Stream& stream, Gemm& gemm) {
      return stream.InBackground([&] {
        return cuda::HeadWeightGradient(stream, gemm, slice, inputs, merged,
                                        blocks, kept, main_grad, bias_grad);
      });
    });
  }

  absl::Status LandRows(const HostPieces& from, void* to, int64_t row_count,
                        int64_t dim, DType dtype, int64_t first_position,
                        ContentSum& content, RowScan& scan) override {
    return Run([&](Stream& stream) {
      return cuda::LandRows(stream, from, to, row_count, dim, dtype,
                            first_position, content, scan);
    });
  }

  absl::Status AddFloats(const float* from, float* to, int64_t count) override {
    return Run([&](Stream& stream) {
      return ToStatus(LaunchAddFloats(from, to, count, stream.get()),
                      "adding floats");
    });
  }

  absl::Status NarrowFloats(const float* from, int64_t count, DType dtype,
                            void* to) override {
    return Run([&](Stream& stream) {
      return ToStatus(LaunchNarrowFloats(from, count, dtype, to, stream.get()),
                      "narrowing floats");
    });
  }

  absl::Status NgramRowIds(std::span<const int32_t> tokens,
                           int64_t table_row_count,
                           std::span<int64_t> row_ids) override {
    return Run([&](Stream& stream) {
      return cuda::NgramRowIds(stream, tokens, table_row_count, row_ids);
    });
  }

  absl::Status NgramWantList(std::span<const std::span<const int32_t>> steps,
                             int64_t table_row_count, std::span<int64_t> want,
                             int64_t& want_count) override {
    return Run([&](Stream& stream) {
      return cuda::NgramWantList(stream, steps, table_row_count, want,
                                 want_count);
    });
  }

  absl::Status FindSlots(std::span<const int64_t> want,
                         std::span<const int64_t> row_ids,
                         std::span<int64_t> slots,
                         int64_t& first_missing) override {
    return Run([&](Stream& stream) {
      return cuda::FindSlots(stream, want, row_ids, slots, first_missing);
    });
  }

  absl::Status NgramEmbedForward(const void* cache, DType dtype, int64_t dim,
                                 std::span<const int32_t> tokens,
                                 std::span<const int64_t> slots,
                                 const SignPool& pool, void* out) override {
    return Run([&](Stream& stream) {
      return cuda::NgramEmbedForward(stream, cache, dtype, dim, tokens, slots,
                                     pool, out);
    });
  }

  absl::Status NgramEmbedBackward(const void* gradient, DType dtype,
                                  int64_t dim, std::span<const int32_t> tokens,
                                  const SignPool& pool,
                                  void* row_gradient) override {
    return Run([&](Stream& stream) {
      return cuda::NgramEmbedBackward(stream, gradient, dtype, dim, tokens,
                                      pool, row_gradient);
    });
  }

  absl::Status SumNgramGradients(std::span<const NgramStep> steps,
                                 DType gradient_dtype, int64_t dim,
                                 const SignPool& pool, int64_t slot_count,
                                 DType wire_dtype, void* out) override {
    return Run([&](Stream& stream) {
      return cuda::SumNgramGradients(stream, steps, gradient_dtype, dim, pool,
                                     slot_count, wire_dtype, out);
    });
  }

 private:
  struct Queue {
    Mutex mutex;
    std::unique_ptr<Stream> stream;  // Used with `mutex` held,
    Gemm gemm;                       // and this on that stream.
  };

  // Calls `operation` with the thread's stream, which no other thread has, and
  // what forms products on it.
  template <typename Operation>
  absl::Status RunWithGemm(Operation operation) {
    absl::Status chosen =
        ToStatus(cudaSetDevice(device_), "choosing the device");
    if (!chosen.ok()) return chosen;
    Queue& queue = queues_[StreamPlace::OfThread()];
    MutexLock lock(queue.mutex);
    return operation(*queue.stream, queue.gemm);
  }

  template <typename Operation>
  absl::Status Run(Operation operation) {
    return RunWithGemm(
        [&](Stream& stream, Gemm&) { return operation(stream); });
  }

  const int device_;
  std::string name_;  // Of the device.
  MemoryPool pool_{AllocateMemory};
  std::array<Queue, kReserved + kOthers> queues_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device_index) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) {
    return absl::NotFoundError(
        absl::StrCat("there is no CUDA device: ", cudaGetErrorString(counted)));
  }
  if (device_index < 0 || device_index >= count) {
    return absl::NotFoundError(absl::StrCat("the CUDA device index is ",
                                            device_index, "; there are ", count,
                                            " devices, counted from 0"));
  }
  absl::Status chosen =
      ToStatus(cudaSetDevice(device_index), "choosing the device");
  if (!chosen.ok()) return chosen;
  auto backend = std::make_unique<CudaBackend>(device_index);
  if (absl::Status made = backend->Create(); !made.ok()) return made;
  return backend;
}

}  // namespace rowhouse::kernels::cuda
