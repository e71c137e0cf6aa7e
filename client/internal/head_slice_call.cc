#include "client/internal/head_slice_call.h"

#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

HeadStatisticsOut Views(std::vector<float>& statistics, size_t token_count) {
  const std::span<float> all(statistics);
  return {all.subspan(0, token_count), all.subspan(token_count, token_count),
          all.subspan(2 * token_count)};
}

// Of the same size.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.empty() ||
         std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

// Opens the stream, and brings it to where the merged statistics are wanted.
absl::Status HeadSliceCall::Open(ShardChannel& channel,
                                 const CallContext& context) {
  if (stream_ != nullptr) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<HeadStream> stream,
                            channel.OpenHead(header_, context));
  std::vector<float> statistics(3 * header_.token_count);
  ROWHOUSE_RETURN_IF_ERROR(stream->Statistics(
      tokens_, Views(statistics, header_.token_count), context));
  if (has_statistics_ && !SameBits(statistics, statistics_)) {
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

kernels::HeadStatistics HeadSliceCall::statistics() {
  const int64_t count = header_.token_count;
  float* const first = statistics_.data();
  return {first, first + count, first + 2 * count};
}

absl::Status HeadSliceCall::AddGradient(const HeadMerged& merged,
                                        HeadGradientSum& sum,
                                        const CallContext& context) {
  const auto add = [&](int64_t first_token, std::string_view rows) {
    return sum.Add(shard_, first_token, rows);
  };
  return cluster_.CallServer(shard_, context, [&](ShardChannel& channel) {
    ROWHOUSE_RETURN_IF_ERROR(Open(channel, context));
    absl::Status status = stream_->Gradient(merged, add, context);
    stream_.reset();
    return status;
  });
}

}  // namespace rowhouse::client::internal
