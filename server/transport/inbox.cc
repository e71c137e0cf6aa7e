#include "server/transport/inbox.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr auto kIdBytes = static_cast<int64_t>(sizeof(int64_t));

}  // namespace

int64_t RowBytes(const ShardSpec& spec) {
  return spec.dim * kernels::SizeOf(spec.gradient_dtype);
}

absl::Status CheckInboxRange(const char* what, int64_t offset, int64_t count,
                             int64_t element_bytes, const Mapping& mapping) {
  const int64_t inbox_bytes = mapping.inbox.size_bytes();
  // In this order nothing overflows.
  if (offset >= 0 && offset <= inbox_bytes &&
      count <= (inbox_bytes - offset) / element_bytes) {
    return absl::OkStatus();
  }
  return wire::Error(absl::StatusCode::kOutOfRange, wire::reasons::kInboxRange,
                     absl::StrCat(what, " of the part are ", count, " of ",
                                  element_bytes, " bytes from byte ", offset,
                                  " on; they must lie in the inbox of ",
                                  inbox_bytes, " bytes"),
                     {{"what", what},
                      {"offset_bytes", absl::StrCat(offset)},
                      {"count", absl::StrCat(count)},
                      {"inbox_bytes", absl::StrCat(inbox_bytes)}});
}

int64_t InboxBytes(const ShardSpec& spec) {
  constexpr int64_t kAlignment = 256;  // Of the rows, behind the ids.
  int64_t bytes = 0;
  if (__builtin_mul_overflow(spec.max_contribution_row_count,
                             RowBytes(spec) + kIdBytes, &bytes) ||
      __builtin_add_overflow(bytes, kAlignment, &bytes)) {
    return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

int64_t HeadInboxBytes(const ShardSpec& spec) {
  if (!spec.dense.has_value()) return 0;
  constexpr int64_t kTwoFloats = 2 * sizeof(float);
  constexpr int64_t kAlignment = 512;  // Of both arrays.
  int64_t bytes = 0;
  if (__builtin_mul_overflow(spec.dense->max_head_token_count,
                             spec.dim * kTwoFloats, &bytes) ||
      __builtin_add_overflow(bytes, kAlignment, &bytes)) {
    return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

absl::Status CheckInboxPart(const InboxPart& part, const Mapping& mapping) {
  if (part.has_ids) {
    ROWHOUSE_RETURN_IF_ERROR(CheckInboxRange(
        "row ids", part.ids_offset, part.row_count, kIdBytes, mapping));
  }
  return CheckInboxRange("rows", part.rows_offset, part.row_count,
                         RowBytes(mapping.shard->spec()), mapping);
}

absl::Status LandInboxPart(const InboxPart& part, const Mapping& mapping,
                           kernels::Backend& backend, PartLanding& landing) {
  const int64_t row_bytes = RowBytes(mapping.shard->spec());
  const auto* const inbox = mapping.inbox.as<std::byte>();
  const int64_t piece = kStagingBytes / row_bytes;
  std::vector<int64_t> ids;
  int64_t first = 0;
  do {
    const int64_t count = std::min(piece, part.row_count - first);
    if (part.has_ids) {
      ids.resize(static_cast<size_t>(count));
      ROWHOUSE_RETURN_IF_ERROR(
          backend.Copy(inbox + part.ids_offset + first * kIdBytes, ids.data(),
                       count * kIdBytes));
    }
    ROWHOUSE_RETURN_IF_ERROR(
        backend.Copy(inbox + part.rows_offset + first * row_bytes,
                     mapping.staging.data(), count * row_bytes));
    ROWHOUSE_RETURN_IF_ERROR(backend.Synchronize());
    ROWHOUSE_RETURN_IF_ERROR(landing.Append(
        first, ids,
        std::string_view(mapping.staging.as<char>(),
                         static_cast<size_t>(count * row_bytes))));
    first += count;
  } while (first < part.row_count);
  return absl::OkStatus();
}

}  // namespace rowhouse::server
