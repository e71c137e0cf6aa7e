#include "kernels/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/status.h"
#include "kernels/cuda/stream.h"
#include "kernels/mutex.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int kStreamCount = 8;

absl::Status Missing(const char* operation) {
  return absl::UnimplementedError(
      absl::StrCat("the CUDA backend has no ", operation, " yet"));
}

// Threads take streams in turn, and each stays with its own.
size_t StreamOfThread() {
  static std::atomic<size_t> next = 0;
  thread_local const size_t mine =
      next.fetch_add(1, std::memory_order_relaxed);
  return mine % kStreamCount;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int device) : device_(device) {}

  absl::Status Create() {
    for (Queue& queue : queues_) {
      absl::StatusOr<std::unique_ptr<Stream>> stream = Stream::Create();
      if (!stream.ok()) return std::move(stream).status();
      queue.stream = *std::move(stream);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Buffer> Allocate(int64_t size_bytes) override {
    Buffer buffer;
    absl::Status done = Run([&](Stream& stream) {
      absl::StatusOr<Buffer> allocated = AllocateMemory(size_bytes);
      if (!allocated.ok()) return std::move(allocated).status();
      buffer = *std::move(allocated);
      if (size_bytes == 0) return absl::OkStatus();
      absl::Status cleared =
          ToStatus(cudaMemsetAsync(buffer.data(), 0,
                                   static_cast<size_t>(size_bytes),
                                   stream.get()),
                   "clearing memory");
      // Any thread may use it now.
      return cleared.ok() ? stream.Synchronize() : cleared;
    });
    if (!done.ok()) return done;
    return buffer;
  }

  absl::Status Copy(const void* from, void* to, int64_t size_bytes) override {
    if (size_bytes == 0) return absl::OkStatus();
    return Run([&](Stream& stream) {
      return ToStatus(
          cudaMemcpyAsync(to, from, static_cast<size_t>(size_bytes),
                          cudaMemcpyDefault, stream.get()),
          "copying");
    });
  }

  absl::Status Synchronize() override {
    return Run([](Stream& stream) { return stream.Synchronize(); });
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

  absl::Status InitializeDense(const DenseTable&, const Initializer&,
                               bool) override {
    return Missing("InitializeDense");
  }

  absl::Status WriteDenseRows(const DenseTable&, int64_t, int64_t,
                              const void*) override {
    return Missing("WriteDenseRows");
  }

  absl::Status ClearMainGrad(const DenseTable&) override {
    return Missing("ClearMainGrad");
  }

  absl::Status AccumulateEmbeddingGradient(const MainGrad&,
                                           const EmbeddingGradient&) override {
    return Missing("AccumulateEmbeddingGradient");
  }

  absl::Status ApplyAdamW(const DenseTable&, const AdamWFactors&,
                          NonFinitePolicy, EventReport&) override {
    return Missing("ApplyAdamW");
  }

  absl::Status DenseStatistics(const DenseTable&,
                               GradientStatistics&) override {
    return Missing("DenseStatistics");
  }

  absl::Status DenseDigest(const DenseTable&, uint64_t&) override {
    return Missing("DenseDigest");
  }

  absl::Status HeadTokenStatistics(const HeadSlice&, const HeadInputs&,
                                   const HeadBlocks&,
                                   const HeadStatistics&) override {
    return Missing("HeadTokenStatistics");
  }

  absl::Status HeadHiddenGradient(const HeadSlice&, const HeadInputs&,
                                  const HeadMerged&, const HeadBlocks&,
                                  std::span<std::byte>, float*) override {
    return Missing("HeadHiddenGradient");
  }

  absl::Status HeadWeightGradient(const HeadSlice&, const HeadInputs&,
                                  const HeadMerged&, const HeadBlocks&,
                                  std::span<const std::byte>, const MainGrad&,
                                  float*) override {
    return Missing("HeadWeightGradient");
  }

  absl::Status LandRows(const void* from, void* to, int64_t row_count,
                        int64_t dim, DType dtype, int64_t first_position,
                        ContentSum& content, RowScan& scan) override {
    return Run([&](Stream& stream) {
      return cuda::LandRows(stream, from, to, row_count, dim, dtype,
                            first_position, content, scan);
    });
  }

  absl::Status NgramRowIds(std::span<const int32_t>, int64_t,
                           std::span<int64_t>) override {
    return Missing("NgramRowIds");
  }

  absl::Status NgramEmbedForward(const void*, DType, int64_t,
                                 std::span<const int32_t>,
                                 std::span<const int64_t>, const SignPool&,
                                 void*) override {
    return Missing("NgramEmbedForward");
  }

  absl::Status NgramEmbedBackward(const void*, DType, int64_t,
                                  std::span<const int32_t>, const SignPool&,
                                  void*) override {
    return Missing("NgramEmbedBackward");
  }

  absl::Status SumNgramGradients(std::span<const NgramStep>, DType, int64_t,
                                 const SignPool&, int64_t, DType,
                                 void*) override {
    return Missing("SumNgramGradients");
  }

 private:
  struct Queue {
    Mutex mutex;
    std::unique_ptr<Stream> stream;  // Used with `mutex` held.
  };

  // Calls `operation` with the thread's stream, which no other thread has.
  template <typename Operation>
  absl::Status Run(Operation operation) {
    absl::Status chosen =
        ToStatus(cudaSetDevice(device_), "choosing the device");
    if (!chosen.ok()) return chosen;
    Queue& queue = queues_[StreamOfThread()];
    MutexLock lock(queue.mutex);
    return operation(*queue.stream);
  }

  const int device_;
  std::array<Queue, kStreamCount> queues_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(int device_index) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) {
    return absl::NotFoundError(absl::StrCat("there is no CUDA device: ",
                                            cudaGetErrorString(counted)));
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
