#include "client/internal/head_inbox.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

}  // namespace

std::unique_ptr<HeadInbox> HeadInbox::Take(
    std::shared_ptr<TableMapping> mapping, const HeadHeader& header,
    const CallContext& context) {
  constexpr int64_t kAlignment = 256;
  absl::StatusOr<TableMapping::Use> use = mapping->Enter(context);
  if (!use.ok() || use->rows().dim() != header.dim) return nullptr;
  // The caller's tokens are in its memory, so these do not overflow.
  const int64_t hidden = header.token_count * header.hidden_row_bytes();
  const int64_t gradient_offset =
      (hidden + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t gradient = header.token_count * header.gradient_row_bytes();
  if (gradient_offset + gradient > use->rows().inbox_bytes() ||
      !mapping->TakeInbox()) {
    return nullptr;
  }
  return std::unique_ptr<HeadInbox>(
      new HeadInbox(std::move(mapping), *std::move(use), gradient_offset));
}

HeadInbox::~HeadInbox() {
  if (finished_) {
    mapping_->GiveInbox();
  } else {
    mapping_->Break();
  }
}

absl::Status HeadInbox::PutHidden(const HeadTokens& tokens) {
  MappedRows& rows = use_.rows();
  if (tokens.device == nullptr || rows.IsOn(tokens.device)) {
    return rows.Write(hidden_offset(), tokens.hidden);
  }
  std::vector<std::byte> staged(tokens.hidden.size());
  const absl::Status copied = tokens.device->Copy(
      tokens.hidden.data(), staged.data(), std::ssize(staged));
  ROWHOUSE_RETURN_IF_ERROR(tokens.device->Synchronize());
  ROWHOUSE_RETURN_IF_ERROR(copied);
  return rows.Write(hidden_offset(), staged);
}

absl::Status HeadInbox::ReadGradient(const HeadHeader& header,
                                     kernels::Backend* device,
                                     HeadGradientSink sink) {
  const int64_t row_bytes = header.gradient_row_bytes();
  if (use_.rows().IsOn(device)) {
    return sink(0, {{reinterpret_cast<const char*>(use_.rows().inbox()) +
                         gradient_offset_,
                     static_cast<size_t>(header.token_count * row_bytes)},
                    device});
  }
  const int64_t most = std::max<int64_t>(1, kPieceBytes / row_bytes);
  std::vector<std::byte> piece;
  for (int64_t first = 0; first < header.token_count; first += most) {
    const int64_t count = std::min(most, header.token_count - first);
    piece.resize(static_cast<size_t>(count * row_bytes));
    ROWHOUSE_RETURN_IF_ERROR(
        use_.rows().Read(gradient_offset_ + first * row_bytes, piece));
    ROWHOUSE_RETURN_IF_ERROR(sink(
        first, std::string_view(reinterpret_cast<const char*>(piece.data()),
                                piece.size())));
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::client::internal
