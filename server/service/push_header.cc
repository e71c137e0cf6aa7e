#include "server/service/push_header.h"

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::Status CheckPart(const v1::PushGradientsHeader& header,
                       const ShardSpec& spec) {
  // The shard checks the table's limit: a part it knows is answered first.
  if (header.part() < 0) {
    return FieldError(reasons::kBadPart, "header.part", int64_t{header.part()},
                      "at least 0");
  }
  if (!header.has_seal_part_count()) return absl::OkStatus();
  if (header.seal_part_count() <= header.part() ||
      header.seal_part_count() > spec.max_part_count) {
    return FieldError(reasons::kBadPart, "header.seal_part_count",
                      int64_t{header.seal_part_count()},
                      absl::StrCat("above this part, ", header.part(),
                                   ", and at most ", spec.max_part_count));
  }
  return absl::OkStatus();
}

absl::Status CheckHandles(const v1::PushGradientsHeader& header) {
  for (int i = 0; i < header.handles_size(); ++i) {
    if (header.handles(i) < 1) {
      return FieldError(reasons::kBadHandle,
                        absl::StrCat("header.handles[", i, "]"),
                        header.handles(i), "above 0");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCommit(const v1::PushGradientsHeader& header,
                         const ShardSpec& spec) {
  if (!header.has_seal_part_count()) {
    return FieldError(reasons::kBadCommit, "header.commit",
                      std::string_view("set without seal_part_count"),
                      "set together with it");
  }
  if (spec.placement.shard_count() != 1) {
    return FieldError(
        reasons::kBadCommit, "header.commit",
        std::string_view(absl::StrCat("set for a table of ",
                                      spec.placement.shard_count(), " shards")),
        "sent with CommitEvent to every shard");
  }
  if (header.commit().sessions_size() != 1) {
    return FieldError(
        reasons::kBadCommit, "header.commit",
        std::string_view(absl::StrCat(
            "set for ", header.commit().sessions_size(), " trainers")),
        "sent with CommitEvent unless there is one trainer");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PushHeader> CheckPushHeader(
    const v1::PushGradientsHeader& header, const ShardSpec& spec) {
  PushHeader result;
  ROWHOUSE_ASSIGN_OR_RETURN(result.part.trainer, TrainerOf(header));
  ROWHOUSE_RETURN_IF_ERROR(CheckEvent("header.event", header.event(), 1));
  ROWHOUSE_RETURN_IF_ERROR(CheckPart(header, spec));
  ROWHOUSE_RETURN_IF_ERROR(
      CheckDtype("header.dtype", header.dtype(), spec.gradient_dtype));
  if (header.row_count() < 0) {
    return FieldError(reasons::kBadCount, "header.row_count",
                      header.row_count(), "at least 0");
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckHandles(header));
  result.part.event = header.event();
  result.part.part = header.part();
  result.part.row_count = header.row_count();
  result.part.handles.assign(header.handles().begin(), header.handles().end());
  if (header.has_seal_part_count()) {
    result.seal_part_count = header.seal_part_count();
  }
  if (header.has_commit()) {
    ROWHOUSE_RETURN_IF_ERROR(CheckCommit(header, spec));
    ROWHOUSE_ASSIGN_OR_RETURN(result.commit, ToCommit(header.commit()));
  }
  return result;
}

}  // namespace rowhouse::server
