#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_SLICE_CALL_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_SLICE_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "client/internal/cluster_core.h"
#include "client/internal/head_gradient_sum.h"
#include "client/internal/head_statistics_arrays.h"
#include "client/internal/head_stream.h"
#include "client/internal/shard_channel.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::client::internal {

/// A head call on one slice. Where its stream breaks by a fault that may pass,
/// in a phase or between two, it is opened and computed again: the same bits.
/// Destroying it closes it.
///
/// Thread-compatible.
class HeadSliceCall {
 public:
  /// What the header and the tokens view must outlive it.
  HeadSliceCall(const ClusterCore& cluster, int32_t shard,
                const HeadHeader& header, const HeadTokens& tokens)
      : cluster_(cluster), shard_(shard), header_(header), tokens_(tokens) {}

  /// Computes the slice's statistics.
  absl::Status ComputeStatistics(const CallContext& context);

  /// The slice's statistics, its own memory; after `ComputeStatistics`, if
  /// there are tokens.
  kernels::HeadStatistics statistics() { return statistics_.view(); }

  /// Adds the slice's hidden gradient to `sum`. May be repeated.
  ///
  /// Errors:
  ///   kInternal  STATISTICS_DIFFER: a call that was made again has others.
  absl::Status AddGradient(const HeadMerged& merged, HeadGradientSum& sum,
                           const CallContext& context);

 private:
  absl::Status Open(ShardChannel& channel, const CallContext& context);

  const ClusterCore& cluster_;
  const int32_t shard_;
  const HeadHeader header_;
  const HeadTokens tokens_;
  std::unique_ptr<HeadStream> stream_;  // With statistics; null: to be opened.
  HeadStatisticsArrays statistics_;
  bool has_statistics_ = false;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_SLICE_CALL_H_
