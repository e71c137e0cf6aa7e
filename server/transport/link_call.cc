#include "server/transport/link_call.h"

#include <string_view>
#include <utility>

#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/field_error.h"

namespace rowhouse::server {

void LinkCall::Start() {
  if (server_.calls.draining()) return End(DrainingError());
  turn_->Start([this] { StartRead(&request_); });
}

// Nothing comes after the second message: a third ends the call like the end.
void LinkCall::OnReadDone(bool ok) {
  absl::Status status = absl::CancelledError("the client has gone");
  // The step goes on as soon as this one is answered.
  if (ok && step_ == Step::kAsked) {
    status = Accept();
  } else if (ok && step_ == Step::kAccepted) {
    status = Join();
  }
  if (!status.ok()) End(std::move(status));
}

absl::Status LinkCall::Accept() {
  // The link may come to its end after this call has.
  ROWHOUSE_ASSIGN_OR_RETURN(
      const std::shared_ptr<Link> made,
      Link::Make(server_.tables, server_.backend, server_.options,
                 [this, turn = turn_](const absl::Status& why) {
                   turn->End([&] { Finish(wire::ToGrpc(why)); });
                 }));
  {
    MutexLock lock(mutex_);
    link_ = made;
  }
  const bool cuda = server_.backend.kind == kernels::BackendKind::kCuda;
  response_.set_backend(cuda ? "cuda" : "cpu");
  response_.set_block_bytes(server_.options.block_bytes);
  number_ = server_.links.Add(made);
  response_.set_link(number_);
  turn_->Start([this] { StartWrite(&response_); });
  return absl::OkStatus();
}

void LinkCall::OnWriteDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the client has gone"));
  if (step_ != Step::kAsked) return;
  step_ = Step::kAccepted;
  turn_->Start([this] { StartRead(&request_); });
}

absl::Status LinkCall::Join() {
  if (request_.id().empty()) return MissingError("id");
  step_ = Step::kJoining;
  const std::shared_ptr<Link> joining = link();
  // Its thread is waited for before it goes.
  ROWHOUSE_RETURN_IF_ERROR(joining->Post(
      [this, link = joining.get(), turn = turn_, id = request_.id()] {
        absl::Status joined = link->Join(id);
        if (!joined.ok()) return link->End(std::move(joined));
        turn->Start([this] {
          response_.Clear();
          response_.set_joined(true);
          StartWrite(&response_);
        });
      }));
  turn_->Start([this] { StartRead(&request_); });
  return absl::OkStatus();
}

void LinkCall::End(absl::Status status) {
  const std::shared_ptr<Link> ending = link();
  if (ending != nullptr) return ending->End(std::move(status));
  turn_->End([&] { Finish(wire::ToGrpc(status)); });
}

std::shared_ptr<Link> LinkCall::link() const {
  MutexLock lock(mutex_);
  return link_;
}

void LinkCall::OnDone() {
  if (std::shared_ptr<Link> ended = link(); ended != nullptr) {
    server_.links.Remove(number_);
    // The client may have gone while the link was made.
    ended->End(absl::CancelledError("the client has gone"));
    server_.stops.Post([ended = std::move(ended)] { ended->Stop(); });
  }
  delete this;
}

}  // namespace rowhouse::server
