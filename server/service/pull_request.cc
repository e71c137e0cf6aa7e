#include "server/service/pull_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/dtype.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/limits.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::Status CheckRowCount(int64_t row_count, const ShardSpec& spec) {
  const int64_t limit =
      std::min(kMaxPullRowCount, spec.max_pull_bytes / PulledRowBytes(spec));
  if (row_count <= limit) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kInvalidArgument, reasons::kPullTooLarge,
      absl::StrCat("row_ids has ", row_count, " ids; there may be ", limit,
                   " in one call, with at most ", spec.max_pull_bytes,
                   " bytes of rows: split it"),
      {{"found", absl::StrCat(row_count)}, {"limit", absl::StrCat(limit)}});
}

absl::Status CheckHandle(const v1::PullRowsRequest& request) {
  if (request.handle() < 0) {
    return FieldError(reasons::kBadHandle, "handle", request.handle(),
                      "above 0, or not set");
  }
  if (request.handle() > 0 && !request.row_ids().empty()) {
    return FieldError(reasons::kMalformed, "handle", request.handle(),
                      "not set together with row_ids");
  }
  if ((request.handle() > 0 || request.return_handle()) &&
      !request.has_trainer()) {
    return MissingError("trainer");
  }
  return absl::OkStatus();
}

absl::Status CheckEvents(const v1::PullRowsRequest& request) {
  if (request.has_min_event() && request.has_exact_event()) {
    return FieldError(reasons::kBadEvent, "min_event", request.min_event(),
                      "not set together with exact_event");
  }
  if (request.has_min_event()) {
    return CheckEvent("min_event", request.min_event(), 0);
  }
  if (request.has_exact_event()) {
    return CheckEvent("exact_event", request.exact_event(), 0);
  }
  return absl::OkStatus();
}

}  // namespace

int64_t PulledRowBytes(const ShardSpec& spec) {
  return spec.dim * kernels::SizeOf(spec.row_dtype);
}

absl::StatusOr<PullRequest> ToPullRequest(const v1::PullRowsRequest& request,
                                          const Shard& shard) {
  ROWHOUSE_RETURN_IF_ERROR(CheckHandle(request));
  ROWHOUSE_RETURN_IF_ERROR(CheckEvents(request));
  ROWHOUSE_RETURN_IF_ERROR(CheckRowCount(request.row_ids_size(), shard.spec()));
  PullRequest result;
  if (request.has_trainer()) {
    ROWHOUSE_ASSIGN_OR_RETURN(result.trainer, TrainerOf(request));
  }
  ROWHOUSE_ASSIGN_OR_RETURN(result.slots,
                            shard.ResolveRowIds(SpanOf(request.row_ids())));
  if (request.handle() > 0) result.handle = request.handle();
  if (request.has_min_event()) result.min_event = request.min_event();
  if (request.has_exact_event()) result.exact_event = request.exact_event();
  result.return_handle = request.return_handle();
  result.training = request.training();
  return result;
}

}  // namespace rowhouse::server
