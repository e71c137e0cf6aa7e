#include "server/transport/link.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/wire/error.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

absl::Status NotOffered(const std::string& why) {
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kNotOffered, why);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Link>> Link::Make(
    TableRegistry& tables, const kernels::BackendOptions& backend,
    const LinkOptions& options, OnEnd on_end) {
  if (!options.offered) return NotOffered("this server offers no links");
  std::shared_ptr<Link> link(new Link(options, std::move(on_end)));
  absl::StatusOr<std::unique_ptr<kernels::PeerLink>> peer =
      kernels::MakePeerLink(backend);
  if (!peer.ok()) {
    return NotOffered(absl::StrCat("this server can make no links: ",
                                   peer.status().message()));
  }
  link->peer_ = *std::move(peer);
  ROWHOUSE_ASSIGN_OR_RETURN(
      link->reservation_,
      tables.ReserveAside("a client's link", kernels::LinkPieces::kBlockCount *
                                                 options.block_bytes));
  ROWHOUSE_ASSIGN_OR_RETURN(
      link->pieces_, kernels::LinkPieces::Make(tables.backend(), *link->peer_,
                                               options.block_bytes));
  return link;
}

absl::Status Link::Join(std::string_view id) {
  return peer_->Connect(id, kernels::LinkEnd::kSecond,
                        absl::Now() + options_.join_timeout);
}

absl::Status Link::Post(absl::AnyInvocable<void()> work) {
  MutexLock lock(mutex_);
  if (thread_ != nullptr) {
    thread_->Post(std::move(work));
    return absl::OkStatus();
  }
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kLinkGone, "the link has ended");
}

void Link::End(absl::Status why) {
  OnEnd on_end;
  {
    MutexLock lock(mutex_);
    if (thread_ != nullptr) peer_->Abort();
    on_end = std::exchange(on_end_, nullptr);
  }
  if (on_end != nullptr) on_end(std::move(why));
}

void Link::Stop() {
  std::unique_ptr<AdminThread> stopping;
  {
    MutexLock lock(mutex_);
    stopping = std::move(thread_);
  }
  stopping.reset();
  // Nothing of the device is held by whoever still names the link.
  peer_.reset();
  pieces_.reset();
  reservation_.reset();
}

absl::Status Link::CheckRowBytes(int64_t row_bytes) const {
  if (row_bytes <= options_.block_bytes) return absl::OkStatus();
  return NotOffered(absl::StrCat("rows have ", row_bytes,
                                 " bytes; links move pieces of up to ",
                                 options_.block_bytes));
}

}  // namespace rowhouse::server
