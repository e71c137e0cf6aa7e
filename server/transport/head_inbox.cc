#include "server/transport/head_inbox.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/field_error.h"
#include "server/service/head_header.h"
#include "server/transport/inbox.h"

namespace rowhouse::server {

absl::StatusOr<std::unique_ptr<HeadInbox>> HeadInbox::Open(
    const Mappings& mappings, const v1::LinearCrossEntropyHeader& header,
    const Shard& shard, const TableRegistry& tables) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<Mapping> mapping,
                            mappings.Find(header.mapping()));
  if (header.table() != mapping->shard->spec().table) {
    return FieldError(
        wire::reasons::kBadName, "header.table",
        std::string_view(Quoted(header.table())),
        absl::StrCat(mapping->shard->spec().table, ", the mapping's"));
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckIsCurrent(*mapping, tables));
  if (header.token_count() < 0) {
    return FieldError(wire::reasons::kBadCount, "header.token_count",
                      header.token_count(), "at least 0");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const HeadHeader checked, ToHeadHeader(header));
  const int64_t dim = shard.spec().dim;
  ROWHOUSE_RETURN_IF_ERROR(CheckInboxRange(
      "hidden states", header.hidden_offset_bytes(), header.token_count(),
      dim * kernels::SizeOf(checked.hidden_dtype), *mapping));
  ROWHOUSE_RETURN_IF_ERROR(CheckInboxRange(
      "hidden gradients", header.gradient_offset_bytes(), header.token_count(),
      dim * static_cast<int64_t>(sizeof(float)), *mapping));
  if (header.gradient_offset_bytes() % static_cast<int64_t>(sizeof(float)) !=
      0) {
    return FieldError(wire::reasons::kBadShape, "header.gradient_offset_bytes",
                      header.gradient_offset_bytes(), "a multiple of 4");
  }
  ROWHOUSE_RETURN_IF_ERROR(mapping->Take());
  return std::unique_ptr<HeadInbox>(
      new HeadInbox(std::move(mapping), header, tables.backend()));
}

HeadInbox::HeadInbox(std::shared_ptr<Mapping> mapping,
                     const v1::LinearCrossEntropyHeader& header,
                     kernels::Backend& backend)
    : mapping_(std::move(mapping)),
      hidden_offset_(header.hidden_offset_bytes()),
      gradient_offset_(header.gradient_offset_bytes()),
      backend_(backend) {}

absl::Status HeadInbox::AppendInputs(HeadCall& head, int64_t first_token,
                                     std::span<const int64_t> targets) {
  const HeadHeader& header = head.header();
  const int64_t row_bytes =
      mapping_->shard->spec().dim * kernels::SizeOf(header.hidden_dtype);
  const auto count = static_cast<int64_t>(targets.size());
  // Whoever counts wrongly is told by the call itself, of no tokens.
  if (first_token < 0 || count > header.token_count - first_token) {
    return head.AppendInputs(first_token, targets, {});
  }
  const auto* const hidden = mapping_->inbox.as<std::byte>() + hidden_offset_;
  const int64_t piece = kStagingBytes / row_bytes;
  int64_t first = 0;
  do {
    const int64_t some = std::min(piece, count - first);
    ROWHOUSE_RETURN_IF_ERROR(
        backend_.Copy(hidden + (first_token + first) * row_bytes,
                      mapping_->staging.data(), some * row_bytes));
    ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
    ROWHOUSE_RETURN_IF_ERROR(head.AppendInputs(
        first_token + first,
        targets.subspan(static_cast<size_t>(first), static_cast<size_t>(some)),
        std::string_view(mapping_->staging.as<char>(),
                         static_cast<size_t>(some * row_bytes))));
    first += some;
  } while (first < count);
  return absl::OkStatus();
}

absl::Status HeadInbox::PutGradient(HeadCall& head) {
  auto* const gradient = reinterpret_cast<float*>(
      mapping_->inbox.as<std::byte>() + gradient_offset_);
  const int64_t size = head.header().token_count * mapping_->shard->spec().dim;
  return head.ReadHiddenGradient(0, {gradient, static_cast<size_t>(size)});
}

}  // namespace rowhouse::server
