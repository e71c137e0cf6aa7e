#include "kernels/cuda/stream.h"

#include <algorithm>

#include "kernels/cuda/memory.h"

namespace rowhouse::kernels::cuda {
namespace {

absl::Status Put(absl::StatusOr<Buffer> allocated, Buffer& buffer) {
  if (!allocated.ok()) return std::move(allocated).status();
  buffer = *std::move(allocated);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stream>> Stream::Create() {
  std::unique_ptr<Stream> stream(new Stream());
  if (absl::Status made = stream->Make(); !made.ok()) return made;
  return stream;
}

absl::Status Stream::Make() {
  int least = 0;
  int greatest = 0;
  absl::Status made =
      ToStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
               "reading the priorities of streams");
  // Not ordered with the default stream, which waits for all others.
  const auto make_stream = [&](cudaStream_t& stream, int priority) {
    if (!made.ok()) return;
    made = ToStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                                 priority),
                    "making a stream");
  };
  make_stream(stream_, greatest);
  make_stream(background_, least);
  current_ = stream_;
  const auto make_event = [&](cudaEvent_t& event) {
    if (!made.ok()) return;
    made = ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                    "making an event");
  };
  for (cudaEvent_t& free : piece_free_) make_event(free);
  make_event(peeked_);
  make_event(handed_over_);
  constexpr int64_t kAllResultBytes = kResultCount * kResultBytes;
  if (made.ok()) made = Put(AllocateMemory(kAllResultBytes), results_);
  if (made.ok()) made = Put(AllocatePinned(kAllResultBytes), host_results_);
  if (made.ok()) made = Put(AllocatePinned(kPieceCount * kPieceBytes), pieces_);
  return made;
}

Stream::~Stream() {
  if (stream_ == nullptr) return;
  (void)cudaStreamSynchronize(stream_);
  for (cudaEvent_t free : piece_free_) {
    if (free != nullptr) (void)cudaEventDestroy(free);
  }
  for (cudaEvent_t event : {peeked_, handed_over_}) {
    if (event != nullptr) (void)cudaEventDestroy(event);
  }
  for (cudaStream_t stream : {background_, stream_}) {
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
  }
}

absl::Status Stream::Follow(cudaStream_t later, cudaStream_t earlier) {
  cudaError_t error = cudaEventRecord(handed_over_, earlier);
  if (error == cudaSuccess) {
    error = cudaStreamWaitEvent(later, handed_over_, 0);
  }
  return ToStatus(error, "ordering streams");
}

absl::Status Stream::Synchronize() {
  const std::vector<std::function<void()>> deliveries =
      std::exchange(deliveries_, {});
  result_count_ = 0;
  absl::Status done = ToStatus(cudaStreamSynchronize(current_), "waiting");
  if (!done.ok()) return done;
  for (const std::function<void()>& deliver : deliveries) deliver();
  return done;
}

absl::Status Stream::GrowScratch(int64_t size_bytes) {
  if (size_bytes <= scratch_.size_bytes()) return absl::OkStatus();
  absl::Status idle =
      ToStatus(cudaStreamSynchronize(current_), "waiting to grow scratch");
  if (!idle.ok()) return idle;
  absl::StatusOr<Buffer> grown = AllocateMemory(size_bytes);
  if (!grown.ok()) return std::move(grown).status();
  std::swap(scratch_, *grown);
  return absl::OkStatus();
}

absl::StatusOr<void*> Stream::NextResult() {
  if (result_count_ == kResultCount) {
    if (absl::Status done = Synchronize(); !done.ok()) return done;
  }
  return results_.as<std::byte>() + result_count_++ * kResultBytes;
}

absl::StatusOr<void*> Stream::NewResultBytes(size_t size_bytes) {
  absl::StatusOr<void*> result = NextResult();
  if (!result.ok()) return result;
  absl::Status cleared = ToStatus(
      cudaMemsetAsync(*result, 0, size_bytes, current_), "clearing a result");
  if (!cleared.ok()) return cleared;
  return result;
}

void* Stream::HostOf(const void* result) const {
  return host_results_.as<std::byte>() +
         (static_cast<const std::byte*>(result) - results_.as<std::byte>());
}

absl::Status Stream::Upload(const HostPieces& from, void* to,
                            int64_t size_bytes) {
  PieceReader reader(from);
  for (int64_t done = 0; done < size_bytes; done += kPieceBytes) {
    const int64_t bytes = std::min(kPieceBytes, size_bytes - done);
    std::byte* const piece = pieces_.as<std::byte>() + piece_ * kPieceBytes;
    cudaEvent_t const free = piece_free_[piece_];
    piece_ = (piece_ + 1) % kPieceCount;
    cudaError_t error = cudaEventSynchronize(free);
    if (error == cudaSuccess) {
      reader.Copy(piece, bytes);
      error = cudaMemcpyAsync(static_cast<std::byte*>(to) + done, piece,
                              static_cast<size_t>(bytes),
                              cudaMemcpyHostToDevice, current_);
    }
    if (error == cudaSuccess) error = cudaEventRecord(free, current_);
    if (error != cudaSuccess) return ToStatus(error, "copying to the device");
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::kernels::cuda
