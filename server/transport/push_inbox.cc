#include "server/transport/push_inbox.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/field_error.h"
#include "server/service/push_header.h"
#include "server/shard/shard.h"
#include "server/transport/inbox.h"

namespace rowhouse::server {
namespace {

// A part on its way out of an inbox.
struct Landing {
  std::shared_ptr<Mapping> mapping;
  InboxPart part;
  PushHeader header;
  std::unique_ptr<PartLanding> rows;
};

void Land(std::unique_ptr<Landing> landing, kernels::Backend& backend,
          v1::PushInboxResponse& response, UnaryCall& call) {
  absl::Status landed = landing->mapping->Take();
  if (landed.ok()) {
    landed = LandInboxPart(landing->part, *landing->mapping, backend,
                           *landing->rows);
    landing->mapping->Give();
  }
  if (!landed.ok()) {
    landing.reset();  // Its place is free before the caller hears of the end.
    return call.End(std::move(landed));
  }
  const std::shared_ptr<Shard> shard = landing->mapping->shard;
  shard->FinishPart(std::move(landing->rows), landing->header.seal_part_count,
                    std::move(landing->header.commit), call.call(),
                    call.Ending<PartReceipt>([&](const PartReceipt& receipt) {
                      response.set_event(receipt.event);
                      response.set_row_count(receipt.row_count);
                      response.set_duplicate(receipt.duplicate);
                    }));
}

}  // namespace

absl::Status PushInbox(const TableRegistry& tables, AdminThread& thread,
                       std::shared_ptr<Mapping> mapping,
                       const v1::PushInboxRequest& request,
                       v1::PushInboxResponse& response, UnaryCall& call) {
  const std::shared_ptr<Shard> shard = mapping->shard;
  if (!request.has_header()) return MissingError("header");
  const v1::PushGradientsHeader& header = request.header();
  if (header.table() != shard->spec().table) {
    return FieldError(wire::reasons::kBadName, "header.table",
                      std::string_view(Quoted(header.table())),
                      absl::StrCat(shard->spec().table, ", the mapping's"));
  }
  auto landing = std::make_unique<Landing>();
  ROWHOUSE_ASSIGN_OR_RETURN(landing->header,
                            CheckPushHeader(header, shard->spec()));
  const int64_t row_bytes = RowBytes(shard->spec());
  if (request.row_bytes() != row_bytes) {
    return FieldError(wire::reasons::kBadShape, "row_bytes",
                      request.row_bytes(),
                      absl::StrCat(row_bytes, ", as the table's"));
  }
  landing->part = {.row_count = header.row_count(),
                   .has_ids = header.handles().empty(),
                   .ids_offset = request.row_ids_offset_bytes(),
                   .rows_offset = request.rows_offset_bytes()};
  ROWHOUSE_RETURN_IF_ERROR(CheckInboxPart(landing->part, *mapping));
  landing->mapping = std::move(mapping);
  call.active().Attach(shard);
  PartHeader part = std::move(landing->header.part);
  shard->BeginPart(
      std::move(part), call.call(),
      [&, landing = std::move(landing)](
          absl::StatusOr<std::unique_ptr<PartLanding>> begun) mutable {
        if (!begun.ok()) return call.End(begun.status());
        landing->rows = *std::move(begun);
        thread.Post([&, landing = std::move(landing)]() mutable {
          Land(std::move(landing), tables.backend(), response, call);
        });
      });
  return absl::OkStatus();
}

}  // namespace rowhouse::server
