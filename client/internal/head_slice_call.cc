#include "client/internal/head_slice_call.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {

// Opens the stream, and brings it to where the merged statistics are wanted.
absl::Status HeadSliceCall::Open(ShardChannel& channel,
                                 const CallContext& context) {
  if (stream_ != nullptr) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<HeadStream> stream,
                            channel.OpenHead(header_, context));
  HeadStatisticsArrays statistics(header_);
  ROWHOUSE_RETURN_IF_ERROR(
      stream->Statistics(tokens_, statistics.out(), context));
  if (has_statistics_ && !statistics.SameBits(statistics_)) {
    return wire::Error(
        absl::StatusCode::kInternal, wire::reasons::kStatisticsDiffer,
        absl::StrCat("other statistics of a head call of event ", header_.event,
                     " than before, wanted the same bits: did its hidden "
                     "states or targets change?"),
        {{"event", std::to_string(header_.event)}});
  }
  statistics_ = std::move(statistics);
  has_statistics_ = true;
  stream_ = std::move(stream);
  return absl::OkStatus();
}

absl::Status HeadSliceCall::ComputeStatistics(const CallContext& context) {
  return cluster_.CallServer(shard_, context, [&](ShardChannel& channel) {
    return Open(channel, context);
  });
}

absl::Status HeadSliceCall::AddGradient(const HeadMerged& merged,
                                        HeadGradientSum& sum,
                                        const CallContext& context) {
  HeadMerged wanted = merged;
  wanted.device = sum.device();
  const auto add = [&](int64_t first_token, const HeadRows& rows) {
    return sum.Add(shard_, first_token, rows);
  };
  return cluster_.CallServer(shard_, context, [&](ShardChannel& channel) {
    ROWHOUSE_RETURN_IF_ERROR(Open(channel, context));
    absl::Status status = stream_->Gradient(wanted, add, context);
    stream_.reset();
    return status;
  });
}

}  // namespace rowhouse::client::internal
