#include "client/internal/link_channel.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/internal/grpc_call.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/grpc_head_stream.h"
#include "client/internal/head_link.h"
#include "client/internal/link_rows.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPause = absl::Minutes(5);

// The path is not there, or not for these rows; nothing has begun.
bool IsAbsent(const absl::Status& status) {
  return absl::IsUnimplemented(status) ||
         wire::ReasonOf(status) == wire::reasons::kLinkGone ||
         wire::ReasonOf(status) == wire::reasons::kNotOffered;
}

// The caller itself has ended the call, or its time is over.
absl::Status OwnEnd(const CallContext& context) {
  if (context.cancellation != nullptr && context.cancellation->cancelled()) {
    return absl::CancelledError("the call was cancelled");
  }
  if (absl::Now() >= context.deadline) {
    return absl::DeadlineExceededError("the deadline passed in a transfer");
  }
  return absl::OkStatus();
}

}  // namespace

LinkChannel::LinkChannel(std::unique_ptr<ShardChannel> inner,
                         std::shared_ptr<grpc::Channel> connection,
                         LinkSettings settings, int64_t least_row_count)
    : ForwardingShardChannel(std::move(inner)),
      stub_(connection),
      heads_(std::move(connection)),
      settings_(std::move(settings)),
      least_row_count_(least_row_count) {
  settings_.on_transfer = [this](ServerLink& link) {
    if (on_transfer_ != nullptr) on_transfer_(link);
  };
}

// One that has ended is made anew after a pause, which grows as long as none
// can be joined; one that was refused is not.
LinkChannel::Link LinkChannel::Find() {
  Link replaced;  // Ends with no lock held.
  MutexLock lock(mutex_);
  if (link_ == nullptr) {
    link_ = std::make_shared<ServerLink>(stub_, settings_);
    pause_ = kFirstPause;
    return link_;
  }
  const std::optional<ServerLink::Ended> ended = link_->ended();
  if (!ended.has_value() || !ended->may_repeat) return link_;
  if (ended->was_joined) pause_ = kFirstPause;
  if (absl::Now() < ended->time + pause_) return link_;
  if (!ended->was_joined) pause_ = std::min(2 * pause_, kLongestPause);
  replaced =
      std::exchange(link_, std::make_shared<ServerLink>(stub_, settings_));
  return link_;
}

absl::StatusOr<PullAnswer> LinkChannel::Pull(const PullCall& call, RowSink sink,
                                             const CallContext& context) {
  if (call.handle.has_value() || std::ssize(call.row_ids) >= least_row_count_) {
    const Link link = Find();
    ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<PullAnswer> pulled,
                              TryPull(call, *link, sink, context));
    if (pulled.has_value()) return *pulled;
  }
  return ForwardingShardChannel::Pull(call, sink, context);
}

// Nothing where there is no link, or it failed before rows were handed on.
absl::StatusOr<std::optional<PullAnswer>> LinkChannel::TryPull(
    const PullCall& call, ServerLink& link, RowSink sink,
    const CallContext& context) {
  const absl::StatusOr<int64_t> number = link.Enter(context);
  if (!number.ok()) return std::nullopt;
  v1::PullLinkRequest request;
  request.set_link(*number);
  *request.mutable_pull() = ToProto(call);
  v1::PullLinkResponse response;
  const absl::Status asked = Unary(stub_, &v1::TransportService::Stub::PullLink,
                                   context, request, response);
  if (IsAbsent(asked)) return std::nullopt;
  if (!asked.ok()) {
    // A turn may have been given that nobody knows of.
    if (wire::ReasonOf(asked).empty()) link.Break();
    return asked;
  }
  const PullAnswer answer{response.event(), response.handle(),
                          response.row_count(), /*landed=*/false, Path::kLink};
  if (answer.row_count == 0) return answer;
  const LinkedRows rows{response.row_count(), response.row_bytes()};
  if (rows.row_bytes != call.row_bytes || rows.row_count < 1 ||
      (!call.handle.has_value() &&
       rows.row_count != std::ssize(call.row_ids))) {
    link.Break();
    return absl::InternalError(absl::StrCat(
        "a link's answer of ", rows.row_count, " rows of ", rows.row_bytes,
        " bytes, wanted ", call.row_ids.size(), " of ", call.row_bytes));
  }
  TransferEnd end;
  {
    // The other end waits for this one.
    Cancellation never;
    const Cancellation::Callback break_on_cancel(
        context.cancellation == nullptr ? never : *context.cancellation,
        [&link] { link.Break(); });
    const absl::StatusOr<ServerLink::Transfer> transfer =
        link.Begin(response.turn(), context);
    end.link = transfer.status();
    if (transfer.ok()) {
      end = ReceiveRows(*transfer, link.PatienceOf(context), rows, call, sink);
    }
  }
  if (end.link.ok()) {
    ++pulls_;
    PullAnswer landed = answer;
    landed.landed = end.landed;
    return landed;
  }
  link.Break();
  ROWHOUSE_RETURN_IF_ERROR(end.caller);
  ROWHOUSE_RETURN_IF_ERROR(OwnEnd(context));
  ++failed_;
  // What was handed on is not handed on twice: the call is made again.
  if (end.sunk) return absl::UnavailableError(end.link.message());
  return std::nullopt;
}

absl::StatusOr<PushAnswer> LinkChannel::Push(const PushCall& call,
                                             const CallContext& context) {
  if (call.selection->size() >= std::max(least_row_count_, int64_t{1})) {
    const Link link = Find();
    ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<PushAnswer> pushed,
                              TryPush(call, *link, context));
    if (pushed.has_value()) {
      ++pushes_;
      return *pushed;
    }
  }
  return ForwardingShardChannel::Push(call, context);
}

// The link is of no more use: the part goes the other way, unless the caller
// has had enough.
absl::StatusOr<std::optional<PushAnswer>> LinkChannel::Lost(
    ServerLink& link, const CallContext& context) {
  link.Break();
  ROWHOUSE_RETURN_IF_ERROR(OwnEnd(context));
  ++failed_;
  return std::nullopt;
}

// Nothing where there is no link, or it failed.
absl::StatusOr<std::optional<PushAnswer>> LinkChannel::TryPush(
    const PushCall& call, ServerLink& link, const CallContext& context) {
  const absl::StatusOr<int64_t> number = link.Enter(context);
  if (!number.ok()) return std::nullopt;
  v1::PushLinkRequest request;
  request.set_link(*number);
  *request.mutable_header() = ToProto(call);
  if (call.handles.empty()) {
    const std::vector<int64_t>& ids = call.selection->row_ids;
    request.mutable_row_ids()->Add(ids.begin(), ids.end());
  }
  GrpcCall grpc_call(context);
  const auto reader = stub_.PushLink(grpc_call.get(), request);
  v1::PushLinkResponse response;
  if (reader->Read(&response)) {
    // The other end waits for this one.
    Cancellation never;
    const Cancellation::Callback break_on_cancel(
        context.cancellation == nullptr ? never : *context.cancellation,
        [&link] { link.Break(); });
    const absl::StatusOr<ServerLink::Transfer> transfer =
        link.Begin(response.turn(), context);
    absl::Status sent = transfer.status();
    if (transfer.ok()) {
      sent = SendRows(*transfer, link.PatienceOf(context), call);
    }
    if (!sent.ok()) {
      grpc_call.get()->TryCancel();
      reader->Finish();
      return Lost(link, context);
    }
  }
  const bool answered = reader->Read(&response);
  const absl::Status status = wire::FromGrpc(reader->Finish());
  if (status.ok() && answered) {
    return PushAnswer{response.event(), response.row_count(),
                      response.duplicate(), Path::kLink};
  }
  if (IsAbsent(status)) return std::nullopt;
  if (!status.ok() && !wire::ReasonOf(status).empty()) return status;
  return Lost(link, context);
}

absl::StatusOr<std::unique_ptr<HeadStream>> LinkChannel::OpenHead(
    const HeadHeader& header, const CallContext& context) {
  std::unique_ptr<HeadLink> link;
  if (header.token_count >= std::max(least_row_count_, int64_t{1})) {
    link = HeadLink::Take(Find(), header, context);
  }
  if (link == nullptr) return ForwardingShardChannel::OpenHead(header, context);
  ++heads_opened_;
  return OpenGrpcHeadStream(heads_, header, context, {.link = std::move(link)});
}

}  // namespace rowhouse::client::internal
