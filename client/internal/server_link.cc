#include "client/internal/server_link.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/internal/transport_faults.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::StatusOr<kernels::BackendOptions> OptionsOf(const std::string& backend,
                                                  int device_index) {
  kernels::BackendOptions options;
  options.device_index = device_index;
  if (backend == "cuda") {
    options.kind = kernels::BackendKind::kCuda;
  } else if (backend != "cpu") {
    return absl::UnimplementedError(
        absl::StrCat("a link of '", backend, "', wanted cpu or cuda"));
  }
  return options;
}

}  // namespace

ServerLink::ServerLink(v1::TransportService::Stub& stub, LinkSettings settings)
    : stub_(stub),
      settings_(std::move(settings)),
      begun_(absl::Now()),
      thread_([this] { Run(); }) {}

ServerLink::~ServerLink() {
  Break();
  thread_.join();
}

absl::StatusOr<int64_t> ServerLink::Enter(const CallContext& context) {
  const WaitCancellation cancellation(context, mutex_, changed_);
  const absl::Time until =
      std::min(context.deadline, begun_ + settings_.patience);
  MutexLock lock(mutex_);
  while (state_ == State::kOpening && !cancellation.cancelled() &&
         absl::Now() < until) {
    changed_.WaitUntil(mutex_, absl::ToChronoTime(until));
  }
  switch (state_) {
    case State::kOpening:
      return absl::UnavailableError("the link is not yet joined");
    case State::kEnded:
      return why_ended_;
    case State::kJoined:
      break;
  }
  if (broken_) return absl::UnavailableError("the link has been broken");
  return number_;
}

std::optional<ServerLink::Ended> ServerLink::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void ServerLink::Break() {
  context_.TryCancel();
  MutexLock lock(mutex_);
  broken_ = true;
  if (peer_ != nullptr) peer_->Abort();
  changed_.SignalAll();
}

absl::StatusOr<ServerLink::Transfer> ServerLink::Begin(
    int64_t turn, const CallContext& context) {
  const WaitCancellation cancellation(context, mutex_, changed_);
  const absl::Time until =
      std::min(context.deadline, absl::Now() + settings_.stall_timeout);
  {
    MutexLock lock(mutex_);
    while (state_ == State::kJoined && !broken_ && !cancellation.cancelled() &&
           (busy_ || next_turn_ < turn) && absl::Now() < until) {
      changed_.WaitUntil(mutex_, absl::ToChronoTime(until));
    }
    if (state_ != State::kJoined || broken_ || cancellation.cancelled() ||
        busy_ || next_turn_ != turn) {
      return absl::UnavailableError(
          absl::StrCat("turn ", turn, " of a link did not come: turn ",
                       next_turn_, " is next"));
    }
    busy_ = true;
  }
  Transfer transfer(*this);
  if (settings_.on_transfer != nullptr) settings_.on_transfer(*this);
  return transfer;
}

ServerLink::Transfer::~Transfer() {
  if (link_ == nullptr) return;
  MutexLock lock(link_->mutex_);
  link_->busy_ = false;
  ++link_->next_turn_;
  link_->changed_.SignalAll();
}

absl::StatusOr<std::byte*> ServerLink::Transfer::HostPiece() const {
  if (link_->host_piece_.data() == nullptr) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        link_->host_piece_,
        link_->backend_->AllocateHost(link_->pieces_->block_bytes()));
  }
  return link_->host_piece_.as<std::byte>();
}

void ServerLink::Run() {
  const auto stream = stub_.OpenLink(&context_);
  absl::Status held = Hold(*stream);
  // This side has given up; or the stream broke, which says why.
  if (!held.ok()) context_.TryCancel();
  stream->WritesDone();
  v1::OpenLinkResponse rest;
  while (stream->Read(&rest)) {
  }
  const absl::Status status = wire::FromGrpc(stream->Finish());
  if (held.ok()) {
    held = status.ok() ? absl::UnavailableError("the link has ended") : status;
  }
  End(std::move(held));
}

// Returns when the stream has broken, or with what is wrong on this side.
absl::Status ServerLink::Hold(Stream& stream) {
  stream.Write(v1::OpenLinkRequest());
  v1::OpenLinkResponse accepted;
  if (!stream.Read(&accepted)) return absl::OkStatus();
  ROWHOUSE_RETURN_IF_ERROR(Accept(accepted));
  return Join(stream);
}

absl::Status ServerLink::Accept(const v1::OpenLinkResponse& accepted) {
  ROWHOUSE_ASSIGN_OR_RETURN(backend_, settings_.backend(accepted.backend()));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const kernels::BackendOptions options,
      OptionsOf(accepted.backend(), settings_.device_index));
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<kernels::PeerLink> peer,
                            kernels::MakePeerLink(options));
  ROWHOUSE_ASSIGN_OR_RETURN(
      pieces_,
      kernels::LinkPieces::Make(*backend_, *peer, accepted.block_bytes()));
  number_ = accepted.link();
  MutexLock lock(mutex_);
  peer_ = std::move(peer);
  if (broken_) peer_->Abort();
  return absl::OkStatus();
}

// While one thread joins, this one sees the stream break.
absl::Status ServerLink::Join(Stream& stream) {
  v1::OpenLinkRequest request;
  ROWHOUSE_ASSIGN_OR_RETURN(*request.mutable_id(), peer_->NewId());
  if (!stream.Write(request)) return absl::OkStatus();
  absl::Status joined;
  std::thread joining([&, id = request.id()] {
    joined = peer_->Connect(id, kernels::LinkEnd::kFirst,
                            absl::Now() + settings_.join_timeout);
    if (!joined.ok()) context_.TryCancel();
  });
  v1::OpenLinkResponse answer;
  const bool answered = stream.Read(&answer);
  if (!answered) peer_->Abort();
  joining.join();
  if (!answered) return joined.ok() ? absl::OkStatus() : joined;
  ROWHOUSE_RETURN_IF_ERROR(joined);
  {
    MutexLock lock(mutex_);
    if (broken_) return absl::OkStatus();
    state_ = State::kJoined;
    was_joined_ = true;
    changed_.SignalAll();
  }
  while (stream.Read(&answer)) {
  }
  return absl::OkStatus();
}

void ServerLink::End(absl::Status why) {
  MutexLock lock(mutex_);
  state_ = State::kEnded;
  if (peer_ != nullptr) peer_->Abort();
  ended_ = {absl::Now(), was_joined_, !IsRefusal(why)};
  why_ended_ = std::move(why);
  changed_.SignalAll();
  while (busy_) changed_.Wait(mutex_);
}

}  // namespace rowhouse::client::internal
