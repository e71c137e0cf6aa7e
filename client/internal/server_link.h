#ifndef ROWHOUSE_CLIENT_INTERNAL_SERVER_LINK_H_
#define ROWHOUSE_CLIENT_INTERNAL_SERVER_LINK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/internal/cancellation.h"
#include "client/internal/map_backend.h"
#include "grpcpp/client_context.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/link_pieces.h"
#include "kernels/mutex.h"
#include "kernels/peer_link.h"
#include "rowhouse/v1/transport_service.grpc.pb.h"

namespace rowhouse::client::internal {

class ServerLink;

/// How a client makes links.
struct LinkSettings {
  MapBackend backend;    ///< Of the memory that rows come to.
  int device_index = 0;  ///< Of the same GPU.
  absl::Duration patience = absl::Seconds(1);
  absl::Duration join_timeout = absl::Seconds(20);
  absl::Duration stall_timeout = absl::Seconds(10);
  /// Tests: called at the beginning of each transfer.
  std::function<void(ServerLink&)> on_transfer = nullptr;
};

/// This process's end of one link to one server, and the stream that holds it.
/// A thread of its own waits for the stream's end: transfers are aborted then.
///
/// Thread-safe.
class ServerLink {
 public:
  /// Begins to make it. `stub` must outlive it.
  ServerLink(v1::TransportService::Stub& stub, LinkSettings settings);

  /// Ends it. Nobody may be at work on it.
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  /// The server's number of it.
  ///
  /// Waits until it is joined, for as long as `patience` since it was begun.
  ///
  /// Errors: why it is not, or not any more.
  absl::StatusOr<int64_t> Enter(const CallContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Bytes of a piece: no row is larger. After `Enter`.
  int64_t block_bytes() const { return pieces_->block_bytes(); }

  /// Whether it has ended, and was joined before; when; and whether another one
  /// may fare better.
  struct Ended {
    absl::Time time;
    bool was_joined = false;
    bool may_repeat = false;
  };
  std::optional<Ended> ended() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Aborts what is under way, and ends it. Returns at once.
  void Break() ABSL_LOCKS_EXCLUDED(mutex_);

  /// The link to oneself for one transfer, until this goes.
  class Transfer {
   public:
    explicit Transfer(ServerLink& link) : link_(&link) {}
    Transfer(Transfer&& other) noexcept
        : link_(std::exchange(other.link_, nullptr)) {}
    Transfer& operator=(Transfer&&) = delete;
    ~Transfer();

    kernels::LinkPieces& pieces() const { return *link_->pieces_; }
    bool Reaches(const void* memory) const {
      return link_->peer_->Reaches(memory);
    }
    kernels::Backend& backend() const { return *link_->backend_; }
    /// Whether a device's memory is what the backend works on; null is the
    /// host's.
    bool IsOn(const kernels::Backend* device) const {
      return device == link_->backend_.get();
    }

    /// Host memory of one piece. Errors: the backend's.
    absl::StatusOr<std::byte*> HostPiece() const;

   private:
    ServerLink* link_;
  };

  /// Waits for the transfers of the turns before.
  ///
  /// Errors: the link has ended, or the wait; the link is then to be broken.
  absl::StatusOr<Transfer> Begin(int64_t turn, const CallContext& context)
      ABSL_LOCKS_EXCLUDED(mutex_);

  kernels::LinkPieces::Patience PatienceOf(const CallContext& context) const {
    return {context.deadline, settings_.stall_timeout};
  }

 private:
  enum class State : uint8_t { kOpening, kJoined, kEnded };
  using Stream =
      grpc::ClientReaderWriter<v1::OpenLinkRequest, v1::OpenLinkResponse>;

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Hold(Stream& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Accept(const v1::OpenLinkResponse& accepted)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Join(Stream& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  v1::TransportService::Stub& stub_;
  const LinkSettings settings_;
  const absl::Time begun_;
  grpc::ClientContext context_;

  // Set by the thread before it is joined; used by transfers, one at a time.
  std::shared_ptr<kernels::Backend> backend_;
  std::unique_ptr<kernels::LinkPieces> pieces_;
  kernels::Buffer host_piece_;
  std::unique_ptr<kernels::PeerLink> peer_;  // Goes before its memory.
  int64_t number_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kOpening;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status why_ended_ ABSL_GUARDED_BY(mutex_);
  std::optional<Ended> ended_ ABSL_GUARDED_BY(mutex_);
  bool was_joined_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_turn_ ABSL_GUARDED_BY(mutex_) = 1;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;  // With a transfer.
  std::thread thread_;  // Last: runs on the members above.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_SERVER_LINK_H_
