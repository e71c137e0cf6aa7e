#include "server/service/import_call.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/dtype.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/payload.h"
#include "server/shard/shard.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

int64_t RowBytes(const ShardSpec& spec) {
  return spec.dim * kernels::SizeOf(spec.row_dtype);
}

// That all rows are of the shard. It owns a range, so the ends tell.
absl::Status CheckRows(const v1::ImportRowsHeader& header, const Shard& shard) {
  const int64_t limit = shard.spec().max_pull_bytes / RowBytes(shard.spec());
  if (header.row_count() < 0 || header.row_count() > limit) {
    return FieldError(
        reasons::kBadCount, "header.row_count", header.row_count(),
        absl::StrCat("in [0, ", limit, "], the table's max_pull_bytes"));
  }
  if (header.row_count() == 0) return absl::OkStatus();
  const std::array first = {header.first_row_id()};
  ROWHOUSE_RETURN_IF_ERROR(shard.ResolveRowIds(first).status());
  const std::array last = {header.first_row_id() + header.row_count() - 1};
  return shard.ResolveRowIds(last).status();
}

}  // namespace

void ImportCall::Start() {
  absl::Status status = active_.admission();
  if (status.ok()) status = ReadNext();
  if (!status.ok()) End(std::move(status));
}

absl::Status ImportCall::ReadNext() {
  const std::shared_ptr<ReadGate> gate = gate_;  // It outlives the call.
  return gate->Read([this] { StartRead(&message_); });
}

void ImportCall::OnReadDone(bool ok) {
  if (!gate_->Enter()) return;
  absl::Status status = ok ? OnMessage() : OnEnd();
  if (!status.ok()) End(std::move(status));
}

absl::Status ImportCall::OnMessage() {
  if (active_.shard() == nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(Begin());
  } else if (message_.has_header()) {
    return FieldError(reasons::kMalformed, "header",
                      std::string_view("set in a later message"),
                      "set in the first one only");
  }
  const auto bytes_before = static_cast<int64_t>(rows_.size());
  ROWHOUSE_RETURN_IF_ERROR(
      PayloadRowCount(static_cast<int64_t>(message_.rows().size()), row_bytes_,
                      {.first_row = message_.first_row(),
                       .rows_before = bytes_before / row_bytes_,
                       .rows_of_call = row_count_})
          .status());
  rows_.append(message_.rows());
  table_->imports.Heard(import_, tables_.Now());
  return ReadNext();
}

absl::Status ImportCall::Begin() {
  if (!message_.has_header()) return MissingError("header");
  const v1::ImportRowsHeader& header = message_.header();
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<ServedTable> table,
                            tables_.Find(header.table()));
  std::shared_ptr<Shard> shard(table, table->shard.get());
  ROWHOUSE_RETURN_IF_ERROR(
      CheckDtype("header.dtype", header.dtype(), shard->spec().row_dtype));
  ROWHOUSE_RETURN_IF_ERROR(CheckRows(header, *shard));
  ROWHOUSE_RETURN_IF_ERROR(TakePlace(table));
  first_row_id_ = header.first_row_id();
  row_count_ = header.row_count();
  row_bytes_ = RowBytes(shard->spec());
  active_.Attach(std::move(shard));
  return absl::OkStatus();
}

// Rows wait in memory until the call is complete; so only some calls may be
// under way, and the shard has reserved that much.
absl::Status ImportCall::TakePlace(std::shared_ptr<ServedTable> table) {
  const auto interrupt = [this, gate = gate_](absl::Status reason) {
    if (gate->Interrupt(reason)) End(std::move(reason));
  };
  ROWHOUSE_ASSIGN_OR_RETURN(
      import_, table->imports.Begin(table->name, tables_.Now(),
                                    tables_.options().limits.lease, interrupt));
  table_ = std::move(table);
  return absl::OkStatus();
}

absl::Status ImportCall::OnEnd() {
  if (active_.call()->cancelled) {
    return absl::CancelledError("the caller has gone");
  }
  if (active_.shard() == nullptr) {
    return FieldError(reasons::kMalformed, "the stream",
                      std::string_view("empty"),
                      "a header, and rows where there are some");
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckAllRowsCame(
      static_cast<int64_t>(rows_.size()) / row_bytes_, row_count_));
  table_->imports.Heard(import_, absl::InfiniteFuture());
  active_.shard()->Import(first_row_id_, row_count_, std::move(rows_),
                          active_.call(),
                          [this](absl::StatusOr<int64_t> row_count) {
                            if (row_count.ok()) {
                              response_.set_row_count(*row_count);
                            }
                            End(row_count.status());
                          });
  return absl::OkStatus();
}

void ImportCall::End(absl::Status status) {
  // Its place is free before the caller hears of the end.
  if (table_ != nullptr) table_->imports.End(import_);
  Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
}

}  // namespace rowhouse::server
