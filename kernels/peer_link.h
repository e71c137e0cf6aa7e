#ifndef ROWHOUSE_KERNELS_PEER_LINK_H_
#define ROWHOUSE_KERNELS_PEER_LINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {

/// Which end of a link a process is. The first names the link.
enum class LinkEnd : uint8_t { kFirst = 0, kSecond = 1 };

/// Moves bytes between the memory of two processes, each on a device of its
/// own: what one end sends, the other receives, in the same pieces and the same
/// order. Between GPUs it is an NCCL communicator of two ranks with a stream of
/// its own, so nothing else waits for the peer; on CPUs a socket of the host,
/// which stands in for it.
///
/// After a fault every later call ends with it, and the other end learns of it
/// by its own deadline or by being told: links have no heartbeat.
///
/// Thread-compatible, but for `Abort`.
class PeerLink {
 public:
  /// Gives up what is under way.
  virtual ~PeerLink() = default;

  /// A new name, for both ends. The first end's process must make it: the
  /// second finds it there.
  ///
  /// Errors: kUnavailable.
  virtual absl::StatusOr<std::string> NewId() = 0;

  /// Joins the ends; both call it.
  ///
  /// Errors:
  ///   kInvalidArgument   `id` is none of this kind of link.
  ///   kDeadlineExceeded  the other end did not come.
  ///   kUnavailable       there is no way to it, or `Abort`.
  virtual absl::Status Connect(std::string_view id, LinkEnd end,
                               absl::Time deadline) = 0;

  /// Whether `memory` can be sent and received as it is; other memory by way of
  /// the backend's.
  virtual bool Reaches(const void* memory) const = 0;

  /// Enqueues a piece, of at least one byte. The memory stays untouched, or
  /// unread, until `Await`.
  ///
  /// Errors, of what came before too:
  ///   kDeadlineExceeded  the other end was not there in time.
  ///   kUnavailable       the link is broken, or `Abort`.
  virtual absl::Status Send(const void* from, int64_t size_bytes,
                            absl::Time deadline) = 0;
  virtual absl::Status Receive(void* to, int64_t size_bytes,
                               absl::Time deadline) = 0;

  /// Pieces enqueued so far.
  virtual int64_t posted() const = 0;

  /// Waits until the first `count` pieces are through. Errors: as `Send`.
  virtual absl::Status Await(int64_t count, absl::Time deadline) = 0;

  /// Ends the link, and what waits for it, soon. Returns at once; any thread.
  virtual void Abort() = 0;
};

/// Makes a link that is not yet joined, between memory of such backends.
///
/// Errors:
///   kUnimplemented  this build, or this machine, has no NCCL.
///   kNotFound       there is no such device.
absl::StatusOr<std::unique_ptr<PeerLink>> MakePeerLink(
    const BackendOptions& options);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_PEER_LINK_H_
