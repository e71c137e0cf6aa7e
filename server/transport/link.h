#ifndef ROWHOUSE_SERVER_TRANSPORT_LINK_H_
#define ROWHOUSE_SERVER_TRANSPORT_LINK_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/link_pieces.h"
#include "kernels/mutex.h"
#include "kernels/peer_link.h"
#include "proto/wire/reasons.h"
#include "server/admin_thread.h"
#include "server/table_registry.h"
#include "server/transport/link_options.h"
#include "server/transport/numbered.h"

namespace rowhouse::server {

/// This server's end of a link, and the thread that makes its transfers one
/// after another: only it waits for the client.
///
/// Thread-safe, but for what is the link's thread's.
class Link {
 public:
  using OnEnd = absl::AnyInvocable<void(absl::Status)>;

  /// Not yet joined. `on_end` is called, at most once, on the thread that finds
  /// that the link has come to its end. `tables` must outlive it.
  ///
  /// Errors:
  ///   kFailedPrecondition  NOT_OFFERED: this machine can make no links.
  ///   kResourceExhausted   MEMORY.
  static absl::StatusOr<std::shared_ptr<Link>> Make(
      TableRegistry& tables, const kernels::BackendOptions& backend,
      const LinkOptions& options, OnEnd on_end);

  /// Runs `work` on the link's thread, after what was posted before.
  ///
  /// Errors:
  ///   kFailedPrecondition  LINK_GONE: it has stopped; `work` is dropped.
  absl::Status Post(absl::AnyInvocable<void()> work)
      ABSL_LOCKS_EXCLUDED(mutex_);

  /// Ends it: transfers under way end soon. A repeat does nothing.
  void End(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Waits for the thread's end. Once, after `End`; not on a lane, nor on the
  /// link's thread.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  /// Checks that rows fit into pieces.
  ///
  /// Errors:
  ///   kFailedPrecondition  NOT_OFFERED.
  absl::Status CheckRowBytes(int64_t row_bytes) const;

  // The link's thread's.
  absl::Status Join(std::string_view id);
  int64_t NextTurn() { return ++turn_; }
  kernels::LinkPieces& pieces() { return *pieces_; }
  kernels::LinkPieces::Patience patience() const {
    return {.stall = options_.stall_timeout};
  }

 private:
  Link(const LinkOptions& options, OnEnd on_end)
      : options_(options), on_end_(std::move(on_end)) {}

  const LinkOptions options_;
  std::shared_ptr<void> reservation_;  // Of the pieces' memory.
  std::unique_ptr<kernels::LinkPieces> pieces_;
  std::unique_ptr<kernels::PeerLink> peer_;  // Goes before its memory.
  int64_t turn_ = 0;

  Mutex mutex_;
  OnEnd on_end_ ABSL_GUARDED_BY(mutex_);  // Null once called.
  std::unique_ptr<AdminThread> thread_ ABSL_GUARDED_BY(mutex_) =
      std::make_unique<AdminThread>();  // Null once stopped.
};

/// The links of a server; one that is not there is LINK_GONE.
class Links : public Numbered<Link> {
 public:
  Links() : Numbered("link", wire::reasons::kLinkGone) {}
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_LINK_H_
