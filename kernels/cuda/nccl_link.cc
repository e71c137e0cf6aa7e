#include "kernels/cuda/nccl_link.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/buffer.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/nccl_library.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

// What has been enqueued and is not through.
constexpr int64_t kMostUnderWay = 16;

// A wait asks the device again and again for so long, then with pauses, in
// which it asks NCCL for faults of its own too.
constexpr absl::Duration kBusyWait = absl::Milliseconds(2);
constexpr absl::Duration kPause = absl::Microseconds(50);

constexpr int64_t kGreetingBytes = 256;

// No call of it waits inside NCCL, nor for a stream: the communicator is
// non-blocking, and ends of pieces are asked for. So the thread that works with
// it sees `Abort`, a deadline or NCCL's own fault at any time, and aborts the
// communicator itself, which ends the kernels that wait for the peer.
class NcclLink final : public PeerLink {
 public:
  NcclLink(const NcclLibrary& nccl, int device)
      : nccl_(nccl), device_(device) {}

  ~NcclLink() override {
    if (cudaSetDevice(device_) != cudaSuccess) return;
    EndCommunicator();
    for (cudaEvent_t event : through_) {
      if (event != nullptr) (void)cudaEventDestroy(event);
    }
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }

  absl::Status Create() {
    absl::Status made = ToStatus(cudaSetDevice(device_), "choosing the device");
    if (made.ok()) {
      made =
          ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                   "making a stream");
    }
    for (cudaEvent_t& event : through_) {
      if (!made.ok()) return made;
      made = ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                      "making an event");
    }
    if (!made.ok()) return made;
    absl::StatusOr<Buffer> greeting = AllocateMemory(2 * kGreetingBytes);
    if (!greeting.ok()) return std::move(greeting).status();
    greeting_ = *std::move(greeting);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> NewId() override {
    ncclUniqueId id;
    absl::Status made = ToFault(nccl_.get_unique_id(&id), "naming a link");
    if (!made.ok()) return made;
    return std::string(id.internal, sizeof(id.internal));
  }

  // The first pieces join the ends' memory, which takes its time: so two go
  // there and back.
  absl::Status Connect(std::string_view id, LinkEnd end,
                       absl::Time deadline) override {
    ncclUniqueId unique;
    if (id.size() != sizeof(unique.internal)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a name of ", id.size(), " bytes, wanted NCCL's of ",
                       sizeof(unique.internal)));
    }
    std::memcpy(unique.internal, id.data(), id.size());
    absl::Status joined = Enter();
    if (!joined.ok()) return joined;
    peer_ = end == LinkEnd::kFirst ? 1 : 0;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    joined = Settle(nccl_.comm_init_rank_config(&communicator_, 2, unique,
                                                1 - peer_, &config),
                    "joining a link", deadline);
    auto* const greeting = greeting_.as<std::byte>();
    for (int i = 0; joined.ok() && i < 2; ++i) {
      const bool sends = (i == 0) == (end == LinkEnd::kFirst);
      joined =
          sends ? Send(greeting, kGreetingBytes, deadline)
                : Receive(greeting + kGreetingBytes, kGreetingBytes, deadline);
    }
    return joined.ok() ? Await(posted_, deadline) : joined;
  }

  bool Reaches(const void* memory) const override {
    cudaPointerAttributes found = {};
    if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    return found.type == cudaMemoryTypeDevice && found.device == device_;
  }

  absl::Status Send(const void* from, int64_t size_bytes,
                    absl::Time deadline) override {
    return Post(deadline, "sending", [&] {
      return nccl_.send(from, static_cast<size_t>(size_bytes), ncclUint8, peer_,
                        communicator_, stream_);
    });
  }

  absl::Status Receive(void* to, int64_t size_bytes,
                       absl::Time deadline) override {
    return Post(deadline, "receiving", [&] {
      return nccl_.recv(to, static_cast<size_t>(size_bytes), ncclUint8, peer_,
                        communicator_, stream_);
    });
  }

  int64_t posted() const override { return posted_; }

  absl::Status Await(int64_t count, absl::Time deadline) override {
    const absl::Time start = absl::Now();
    while (fault_.ok() && through_count_ < count) {
      const cudaError_t found = cudaEventQuery(EventOf(through_count_));
      if (found == cudaSuccess) {
        ++through_count_;
        continue;
      }
      if (found != cudaErrorNotReady) {
        return Fail(ToStatus(found, "waiting for a link"));
      }
      absl::Status usable = Look(absl::Now() - start < kBusyWait, deadline);
      if (!usable.ok()) return usable;
    }
    return fault_;
  }

  void Abort() override { aborted_ = true; }

 private:
  cudaEvent_t EventOf(int64_t piece) const {
    return through_[static_cast<size_t>(piece % kMostUnderWay)];
  }

  absl::Status Enter() {
    if (!fault_.ok()) return fault_;
    if (aborted_) return Fail(absl::UnavailableError("the link was aborted"));
    absl::Status chosen =
        ToStatus(cudaSetDevice(device_), "choosing the device");
    return chosen.ok() ? chosen : Fail(std::move(chosen));
  }

  template <typename Enqueue>
  absl::Status Post(absl::Time deadline, const char* doing, Enqueue enqueue) {
    absl::Status status = Enter();
    if (status.ok()) status = Await(posted_ - kMostUnderWay + 1, deadline);
    if (status.ok()) status = Settle(enqueue(), doing, deadline);
    if (!status.ok()) return status;
    status = ToStatus(cudaEventRecord(EventOf(posted_), stream_), doing);
    if (!status.ok()) return Fail(std::move(status));
    ++posted_;
    return absl::OkStatus();
  }

  // Waits until NCCL has done on the host what it was asked for.
  absl::Status Settle(ncclResult_t result, const char* doing,
                      absl::Time deadline) {
    const absl::Time start = absl::Now();
    while (result == ncclInProgress) {
      absl::Status usable = Look(absl::Now() - start < kBusyWait, deadline);
      if (!usable.ok()) return usable;
      if (nccl_.comm_get_async_error(communicator_, &result) != ncclSuccess) {
        result = ncclInternalError;
      }
    }
    if (result == ncclSuccess) return absl::OkStatus();
    return Fail(ToFault(result, doing));
  }

  // Between two looks of a wait.
  absl::Status Look(bool busy, absl::Time deadline) {
    if (aborted_) return Fail(absl::UnavailableError("the link was aborted"));
    if (absl::Now() >= deadline) {
      return Fail(absl::DeadlineExceededError(
          "the other end of a link was not there in time"));
    }
    if (busy) {
      std::this_thread::yield();
      return absl::OkStatus();
    }
    ncclResult_t found = ncclSuccess;
    if (nccl_.comm_get_async_error(communicator_, &found) == ncclSuccess &&
        found != ncclSuccess && found != ncclInProgress) {
      return Fail(ToFault(found, "at work on a link"));
    }
    absl::SleepFor(kPause);
    return absl::OkStatus();
  }

  absl::Status ToFault(ncclResult_t result, const char* doing) const {
    if (result == ncclSuccess) return absl::OkStatus();
    const char* const last = nccl_.get_last_error(communicator_);
    return absl::UnavailableError(
        absl::StrCat("NCCL, ", doing, ": ", nccl_.get_error_string(result),
                     "; ", last == nullptr ? "" : last));
  }

  absl::Status Fail(absl::Status fault) {
    fault_ = std::move(fault);
    EndCommunicator();
    return fault_;
  }

  void EndCommunicator() {
    if (communicator_ == nullptr) return;
    (void)nccl_.comm_abort(communicator_);
    communicator_ = nullptr;
    // Its kernels end now; memory they used is free when they have.
    (void)cudaStreamSynchronize(stream_);
  }

  const NcclLibrary& nccl_;
  const int device_;
  std::atomic<bool> aborted_ = false;
  absl::Status fault_;
  ncclComm_t communicator_ = nullptr;
  int peer_ = 0;
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, kMostUnderWay> through_ = {};  // Piece i: i % size.
  Buffer greeting_;
  int64_t posted_ = 0;
  int64_t through_count_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerLink>> MakeNcclLink(int device_index) {
  absl::StatusOr<const NcclLibrary*> nccl = NcclLibrary::Find();
  if (!nccl.ok()) return std::move(nccl).status();
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || device_index < 0 ||
      device_index >= count) {
    return absl::NotFoundError(
        absl::StrCat("there is no CUDA device ", device_index, " for a link"));
  }
  auto link = std::make_unique<NcclLink>(**nccl, device_index);
  if (absl::Status made = link->Create(); !made.ok()) return made;
  return link;
}

}  // namespace rowhouse::kernels::cuda
