#include "client/internal/head_link.h"

#include <cstddef>
#include <string_view>
#include <vector>

#include "client/internal/link_rows.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {

namespace {

// The call is made again then, on another path.
absl::Status LinkFault(const absl::Status& status) {
  return status.ok() ? status : absl::UnavailableError(status.message());
}

}  // namespace

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
                            const HeadTokens& tokens,
                            const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const ServerLink::Transfer transfer,
                            link_->Begin(turn, context));
  RowSelection all;  // A run of rows; their ids are all one here.
  all.row_ids.resize(tokens.targets.size());
  PushCall call;
  call.selection = &all;
  call.rows = tokens.hidden.data();
  call.device = tokens.device;
  call.row_bytes = header.hidden_row_bytes();
  return LinkFault(SendRows(transfer, link_->PatienceOf(context), call));
}

absl::Status HeadLink::Receive(int64_t turn, const HeadHeader& header,
                               kernels::Backend* device, HeadGradientSink sink,
                               const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(const ServerLink::Transfer transfer,
                            link_->Begin(turn, context));
  const LinkedRows rows = {header.token_count, header.gradient_row_bytes()};
  const kernels::LinkPieces::Patience patience = link_->PatienceOf(context);
  TransferEnd end;
  if (device != nullptr && transfer.IsOn(device)) {
    end.link = transfer.pieces().Receive(
        rows.row_count, rows.row_bytes, patience,
        [&](int64_t first, int64_t count, const std::byte* from) {
          end.caller =
              sink(first, {{reinterpret_cast<const char*>(from),
                            static_cast<size_t>(count * rows.row_bytes)},
                           device});
          return end.caller;
        });
  } else {
    end = ReceiveRows(transfer, patience, rows, PullCall(),
                      [&](int64_t first, const kernels::HostPieces& some) {
                        return sink(first, some.pieces().front());
                      });
  }
  ROWHOUSE_RETURN_IF_ERROR(end.caller);
  return LinkFault(end.link);
}

}  // namespace rowhouse::client::internal
