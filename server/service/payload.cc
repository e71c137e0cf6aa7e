#include "server/service/payload.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "server/service/field_error.h"
#include "server/service/limits.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

}  // namespace

absl::StatusOr<int64_t> PayloadRowCount(int64_t payload_bytes,
                                        int64_t row_bytes,
                                        const PayloadPosition& position) {
  if (payload_bytes > kMaxPayloadBytes) {
    return FieldError(
        reasons::kBadShape, "the size of rows", payload_bytes,
        absl::StrCat("at most ", kMaxPayloadBytes, " bytes in one message"));
  }
  if (payload_bytes % row_bytes != 0) {
    return FieldError(
        reasons::kBadShape, "the size of rows", payload_bytes,
        absl::StrCat("a multiple of ", row_bytes, ", the bytes of a row"));
  }
  if (position.first_row != position.rows_before) {
    return FieldError(
        reasons::kBadOffset, "first_row", position.first_row,
        absl::StrCat(position.rows_before, ", the rows sent before"));
  }
  const int64_t row_count = payload_bytes / row_bytes;
  if (row_count > position.rows_of_call - position.rows_before) {
    return FieldError(
        reasons::kBadCount, "the count of rows sent",
        position.rows_before + row_count,
        absl::StrCat(position.rows_of_call, ", the header's row_count"));
  }
  return row_count;
}

absl::Status CheckAllRowsCame(int64_t came, int64_t announced) {
  if (came == announced) return absl::OkStatus();
  return FieldError(reasons::kBadCount, "the count of rows sent", came,
                    absl::StrCat(announced, ", the header's row_count"));
}

}  // namespace rowhouse::server
