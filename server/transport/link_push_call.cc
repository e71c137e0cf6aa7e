#include "server/transport/link_push_call.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

int64_t RowBytes(const ShardSpec& spec) {
  return spec.dim * kernels::SizeOf(spec.gradient_dtype);
}

}  // namespace

void LinkPushCall::Start(const TableRegistry& tables, const Links& links,
                         const v1::PushLinkRequest& request) {
  request_ = &request;
  absl::Status status = active_.admission();
  if (status.ok()) status = Begin(tables, links);
  if (!status.ok()) End(std::move(status));
}

absl::Status LinkPushCall::Begin(const TableRegistry& tables,
                                 const Links& links) {
  ROWHOUSE_ASSIGN_OR_RETURN(link_, links.Find(request_->link()));
  if (!request_->has_header()) return MissingError("header");
  const v1::PushGradientsHeader& header = request_->header();
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Shard> shard,
                            tables.FindShard(header.table()));
  ROWHOUSE_RETURN_IF_ERROR(link_->CheckRowBytes(RowBytes(shard->spec())));
  ROWHOUSE_ASSIGN_OR_RETURN(header_, CheckPushHeader(header, shard->spec()));
  const int64_t rows = header.row_count();
  if (rows == 0) {
    return FieldError(wire::reasons::kBadCount, "header.row_count", rows,
                      "at least 1");
  }
  const int64_t wanted = header.handles().empty() ? rows : 0;
  if (request_->row_ids_size() != wanted) {
    return FieldError(wire::reasons::kBadCount, "the count of row_ids",
                      int64_t{request_->row_ids_size()}, absl::StrCat(wanted));
  }
  active_.Attach(shard);
  shard->BeginPart(
      std::move(header_.part), active_.call(),
      [this](absl::StatusOr<std::unique_ptr<PartLanding>> landing) {
        OnBegun(std::move(landing));
      });
  return absl::OkStatus();
}

void LinkPushCall::OnBegun(
    absl::StatusOr<std::unique_ptr<PartLanding>> landing) {
  if (!landing.ok()) return End(landing.status());
  landing_ = *std::move(landing);
  absl::Status posted = link_->Post([this] { Land(); });
  if (!posted.ok()) End(std::move(posted));
}

void LinkPushCall::Land() {
  response_.set_turn(link_->NextTurn());
  StartWrite(&response_);
  absl::Status landed = Receive();
  // At once, unless the client has stopped reading: then its link has ended.
  if (!written_.get_future().get() && landed.ok()) {
    landed = absl::CancelledError("the caller has gone");
  }
  if (!landed.ok()) return End(std::move(landed));
  const std::shared_ptr<Shard> shard = active_.shard();
  shard->FinishPart(std::move(landing_), header_.seal_part_count,
                    std::move(header_.commit), active_.call(),
                    [this](absl::StatusOr<PartReceipt> receipt) {
                      if (!receipt.ok()) return End(receipt.status());
                      Answer(*receipt);
                    });
}

// Of a part that is refused, the rest is received all the same.
absl::Status LinkPushCall::Receive() {
  const int64_t row_bytes = RowBytes(active_.shard()->spec());
  const std::span<const int64_t> ids = SpanOf(request_->row_ids());
  absl::Status landed = absl::OkStatus();
  absl::Status received = link_->pieces().Receive(
      request_->header().row_count(), row_bytes, link_->patience(),
      [&](int64_t first, int64_t count, const std::byte* rows) {
        if (!landed.ok()) return absl::OkStatus();
        landed = landing_->Append(
            first,
            ids.empty() ? ids
                        : ids.subspan(static_cast<size_t>(first),
                                      static_cast<size_t>(count)),
            std::string_view(reinterpret_cast<const char*>(rows),
                             static_cast<size_t>(count * row_bytes)));
        return absl::OkStatus();
      });
  if (received.ok()) return landed;
  link_->End(received);
  return received;
}

void LinkPushCall::Answer(const PartReceipt& receipt) {
  response_.Clear();
  response_.set_event(receipt.event);
  response_.set_row_count(receipt.row_count);
  response_.set_duplicate(receipt.duplicate);
  StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
}

void LinkPushCall::End(absl::Status status) {
  landing_.reset();  // Its place is free before the caller hears of the end.
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

}  // namespace rowhouse::server
