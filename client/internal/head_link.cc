#include "client/internal/head_link.h"

#include <string_view>

#include "client/internal/link_rows.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {

std::unique_ptr<HeadLink> HeadLink::Take(std::shared_ptr<ServerLink> link,
                                         const HeadHeader& header,
                                         const CallContext& context) {
  const absl::StatusOr<int64_t> number = link->Enter(context);
  if (!number.ok() || header.gradient_row_bytes() > link->block_bytes()) {
    return nullptr;
  }
  return std::unique_ptr<HeadLink>(new HeadLink(std::move(link), *number));
}

HeadLink::~HeadLink() {
  if (!finished_) link_->Break();
}

absl::Status HeadLink::Send(int64_t turn, const HeadHeader& header,
                            std::span<const std::byte> hidden,
                            const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const ServerLink::Transfer transfer,
                            link_->Begin(turn, context));
  const absl::Status sent =
      SendTogether(transfer, link_->PatienceOf(context), hidden.data(),
                   header.token_count, header.hidden_row_bytes());
  return sent.ok() ? sent : absl::UnavailableError(sent.message());
}

absl::Status HeadLink::Receive(int64_t turn, const HeadHeader& header,
                               HeadGradientSink sink,
                               const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const ServerLink::Transfer transfer,
                            link_->Begin(turn, context));
  const TransferEnd end =
      ReceiveRows(transfer, link_->PatienceOf(context),
                  {header.token_count, header.gradient_row_bytes()}, PullCall(),
                  [&](int64_t first, const kernels::HostPieces& rows) {
                    return sink(first, rows.pieces().front());
                  });
  ROWHOUSE_RETURN_IF_ERROR(end.caller);
  return end.link.ok() ? end.link : absl::UnavailableError(end.link.message());
}

}  // namespace rowhouse::client::internal
