#include "server/service/push_call.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/payload.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

}  // namespace

void PushCall::Start() {
  absl::Status status = active_.admission();
  if (status.ok()) status = ReadNext();
  if (!status.ok()) End(std::move(status));
}

absl::Status PushCall::ReadNext() {
  const std::shared_ptr<ReadGate> gate = gate_;  // It outlives the call.
  return gate->Read([this] { StartRead(&received_); });
}

// A message that cannot be used ends the call at once: no read is under way
// then, and the caller's later messages are dropped by gRPC.
void PushCall::OnReadDone(bool ok) {
  if (!gate_->Enter()) return;
  absl::Status status = ok ? OnMessage() : OnEnd();
  if (!status.ok()) End(std::move(status));
}

absl::Status PushCall::OnMessage() {
  if (!message_.Parse(received_)) return NotAMessageError();
  received_.Clear();
  if (header_ == nullptr) return Begin();
  if (message_.fields().has_header()) {
    return FieldError(reasons::kMalformed, "header",
                      std::string_view("set in a later message"),
                      "set in the first one only");
  }
  ROWHOUSE_RETURN_IF_ERROR(LandFirst());
  ROWHOUSE_RETURN_IF_ERROR(Land(message_));
  message_.DropRows();  // Their memory is free while the next is waited for.
  return ReadNext();
}

absl::Status PushCall::Begin() {
  if (!message_.fields().has_header()) return MissingError("header");
  const v1::PushGradientsHeader& header = message_.fields().header();
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Shard> shard,
                            tables_.FindShard(header.table()));
  absl::StatusOr<PushHeader> checked = CheckPushHeader(header, shard->spec());
  if (!checked.ok()) return checked.status();
  header_ = std::make_unique<PushHeader>(*std::move(checked));
  row_bytes_ =
      shard->spec().dim * kernels::SizeOf(shard->spec().gradient_dtype);
  row_count_ = header.row_count();
  by_handles_ = !header.handles().empty();
  // It is kept for as long as the caller likes.
  ROWHOUSE_RETURN_IF_ERROR(RowCountOf(message_).status());
  first_message_ = std::exchange(message_, {});
  active_.Attach(shard);
  shard->BeginPart(
      std::move(header_->part), active_.call(),
      [this](absl::StatusOr<std::unique_ptr<PartLanding>> landing) {
        OnBegun(std::move(landing));
      });
  return absl::OkStatus();
}

void PushCall::OnBegun(absl::StatusOr<std::unique_ptr<PartLanding>> landing) {
  if (!landing.ok()) return End(landing.status());
  landing_ = *std::move(landing);
  landing_->set_on_revoked([this, gate = gate_](absl::Status reason) {
    if (gate->Interrupt(reason)) End(std::move(reason));
  });
  absl::Status status = ReadNext();
  if (!status.ok()) End(std::move(status));
}

absl::Status PushCall::LandFirst() {
  if (first_landed_) return absl::OkStatus();
  first_landed_ = true;
  const Message first = std::exchange(first_message_, {});
  return Land(first);
}

absl::StatusOr<int64_t> PushCall::RowCountOf(const Message& message) const {
  const v1::PushGradientsRequest& fields = message.fields();
  ROWHOUSE_ASSIGN_OR_RETURN(
      const int64_t row_count,
      PayloadRowCount(kernels::HostPieces(message.rows()).size_bytes(),
                      row_bytes_,
                      {.first_row = fields.first_row(),
                       .rows_before = landed_row_count_,
                       .rows_of_call = row_count_}));
  const int64_t wanted_id_count = by_handles_ ? 0 : row_count;
  if (fields.row_ids_size() != wanted_id_count) {
    return FieldError(reasons::kBadCount, "the count of row_ids",
                      int64_t{fields.row_ids_size()},
                      absl::StrCat(wanted_id_count,
                                   by_handles_ ? ", the header having handles"
                                               : ", the rows of the message"));
  }
  return row_count;
}

absl::Status PushCall::Land(const Message& message) {
  const v1::PushGradientsRequest& fields = message.fields();
  ROWHOUSE_ASSIGN_OR_RETURN(const int64_t row_count, RowCountOf(message));
  ROWHOUSE_RETURN_IF_ERROR(
      landing_->Append(fields.first_row(), SpanOf(fields.row_ids()),
                       kernels::HostPieces(message.rows())));
  landed_row_count_ += row_count;
  return absl::OkStatus();
}

absl::Status PushCall::OnEnd() {
  if (active_.call()->cancelled) {
    return absl::CancelledError("the caller has gone");
  }
  if (header_ == nullptr) {
    return FieldError(reasons::kMalformed, "the stream",
                      std::string_view("empty"),
                      "a header, and rows where there are some");
  }
  ROWHOUSE_RETURN_IF_ERROR(LandFirst());
  ROWHOUSE_RETURN_IF_ERROR(CheckAllRowsCame(landed_row_count_, row_count_));
  active_.shard()->FinishPart(std::move(landing_), header_->seal_part_count,
                              std::move(header_->commit), active_.call(),
                              [this](absl::StatusOr<PartReceipt> receipt) {
                                if (receipt.ok()) Answer(*receipt);
                                End(receipt.status());
                              });
  return absl::OkStatus();
}

void PushCall::Answer(const PartReceipt& receipt) {
  v1::PushGradientsResponse response;
  response.set_event(receipt.event);
  response.set_row_count(receipt.row_count);
  response.set_duplicate(receipt.duplicate);
  response_ = wire::ToByteBuffer(response);
}

void PushCall::End(absl::Status status) {
  landing_.reset();  // Its place is free before the caller hears of the end.
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

}  // namespace rowhouse::server
