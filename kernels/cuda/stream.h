#ifndef ROWHOUSE_KERNELS_CUDA_STREAM_H_
#define ROWHOUSE_KERNELS_CUDA_STREAM_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/cuda/publish.h"
#include "kernels/cuda/scratch.h"
#include "kernels/cuda/status.h"
#include "kernels/host_pieces.h"

namespace rowhouse::kernels::cuda {

/// A queue of work on the current device: what is enqueued runs in order. With
/// it come scratch memory, staging of host memory, and small results on their
/// way to the host.
///
/// Thread-compatible.
class Stream {
 public:
  /// Errors: kResourceExhausted, kInternal.
  static absl::StatusOr<std::unique_ptr<Stream>> Create();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return current_; }

  /// Calls `enqueue`; what it enqueues gives way on the device to the work of
  /// other streams. This one's order is kept.
  ///
  /// Errors: `enqueue`'s; kInternal.
  template <typename Enqueue>
  absl::Status InBackground(Enqueue enqueue) {
    absl::Status done = Follow(background_, stream_);
    if (!done.ok()) return done;
    current_ = background_;
    done = enqueue();
    current_ = stream_;
    done.Update(Follow(stream_, background_));
    return done;
  }

  /// Waits for all work and hands out the results. Errors: kInternal; then no
  /// result is handed out.
  absl::Status Synchronize();

  /// `cut(ScratchCutter&)` of scratch memory, not initialized: what it returns
  /// belongs to the caller until the next `Scratch` of this stream. The memory
  /// is kept for later calls, and grows after waiting for the work before.
  ///
  /// Errors: kResourceExhausted, kInternal; nothing was enqueued then.
  template <typename Cut>
  auto Scratch(Cut cut)
      -> absl::StatusOr<decltype(cut(std::declval<ScratchCutter&>()))> {
    ScratchCutter counter(nullptr);
    (void)cut(counter);
    if (absl::Status grown = GrowScratch(counter.size_bytes()); !grown.ok()) {
      return grown;
    }
    ScratchCutter cutter(scratch_.data());
    return cut(cutter);
  }

  /// Takes memory for calls that cut so much. Errors: as `Scratch`; then what
  /// there was is kept.
  absl::Status GrowScratch(int64_t size_bytes);

  /// A zeroed `T` in device memory for kernels to write; then `Deliver` it.
  /// At most `kResultBytes` a result.
  template <typename T>
  absl::StatusOr<T*> NewResult() {
    static_assert(sizeof(T) <= kResultBytes);
    absl::StatusOr<void*> result = NewResultBytes(sizeof(T));
    if (!result.ok()) return std::move(result).status();
    return static_cast<T*>(*result);
  }

  /// Page-locked memory for a kernel to write a `T` to; `Synchronize` passes it
  /// to `use`.
  template <typename T>
  absl::StatusOr<T*> NewHostResult(std::function<void(const T&)> use) {
    static_assert(sizeof(T) <= kResultBytes);
    absl::StatusOr<void*> result = NextResult();
    if (!result.ok()) return std::move(result).status();
    void* const host = HostOf(*result);
    DeliverFrom<T>(host, std::move(use));
    return static_cast<T*>(host);
  }

  /// Copies `result` to the host after the work enqueued so far;
  /// `Synchronize` passes it to `use`.
  template <typename T>
  absl::Status Deliver(T* result, std::function<void(const T&)> use) {
    void* const host = HostOf(result);
    absl::Status copied = ToStatus(
        LaunchPublish(result, host, sizeof(T), current_), "reading a result");
    if (!copied.ok()) return copied;
    DeliverFrom<T>(host, std::move(use));
    return absl::OkStatus();
  }

  /// Reads `*value`, part of a result, as the work enqueued so far leaves it;
  /// the device goes on with what `meanwhile` enqueues. `value` is aligned to 8
  /// bytes.
  template <typename T, typename Meanwhile>
  absl::StatusOr<T> Peek(const T* value, Meanwhile meanwhile) {
    void* const host = HostOf(value);
    cudaError_t error = LaunchPublish(value, host, sizeof(T), current_);
    if (error == cudaSuccess) error = cudaEventRecord(peeked_, current_);
    if (error == cudaSuccess) error = meanwhile();
    if (error == cudaSuccess) error = cudaEventSynchronize(peeked_);
    if (error != cudaSuccess) return ToStatus(error, "reading a result");
    T read;
    std::memcpy(&read, host, sizeof(T));
    return read;
  }

  /// Copies host memory `from`, which may be freed on return, to the device,
  /// through page-locked memory: the host fills one block while the device
  /// takes another.
  absl::Status Upload(const HostPieces& from, void* to, int64_t size_bytes);
  absl::Status Upload(const void* from, void* to, int64_t size_bytes) {
    return Upload(std::string_view(static_cast<const char*>(from),
                                   static_cast<size_t>(size_bytes)),
                  to, size_bytes);
  }

 private:
  static constexpr int64_t kResultBytes = 4096;
  static constexpr int64_t kResultCount = 16;
  static constexpr int64_t kPieceBytes = 1 << 20;
  static constexpr int kPieceCount = 4;

  Stream() = default;

  absl::Status Make();
  absl::Status Follow(cudaStream_t later, cudaStream_t earlier);
  template <typename T>
  void DeliverFrom(void* host, std::function<void(const T&)> use) {
    deliveries_.push_back([host, use = std::move(use)] {
      T value;
      std::memcpy(static_cast<void*>(&value), host, sizeof(T));
      use(value);
    });
  }
  absl::StatusOr<void*> NextResult();
  absl::StatusOr<void*> NewResultBytes(size_t size_bytes);
  void* HostOf(const void* result) const;

  cudaStream_t stream_ = nullptr;
  cudaStream_t background_ = nullptr;  // Of the least priority.
  cudaStream_t current_ = nullptr;     // One of these.
  cudaEvent_t handed_over_ = nullptr;  // From one to the other.
  Buffer scratch_;
  Buffer results_;       // On the device; [kResultCount] of kResultBytes.
  Buffer host_results_;  // Page-locked.
  int64_t result_count_ = 0;
  std::vector<std::function<void()>> deliveries_;
  Buffer pieces_;  // Page-locked.
  cudaEvent_t piece_free_[kPieceCount] = {};
  cudaEvent_t peeked_ = nullptr;
  int piece_ = 0;
};

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_STREAM_H_
