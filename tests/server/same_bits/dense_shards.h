#ifndef ROWHOUSE_TESTS_SERVER_SAME_BITS_DENSE_SHARDS_H_
#define ROWHOUSE_TESTS_SERVER_SAME_BITS_DENSE_SHARDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "server/shard/shard.h"
#include "server/shard/timer_queue.h"
#include "tests/server/shard/blocking_shard.h"

namespace rowhouse::testing {

/// One part of a dense table: gradient rows of an embedding, or the tokens of
/// a head call.
struct DensePart {
  int32_t rank = 0;
  int32_t part = 0;
  std::vector<int64_t> row_ids;  ///< Of the rows, or the tokens' targets.
  std::string bytes;             ///< Rows, or hidden states.
  bool head = false;
  kernels::DType hidden_dtype = kernels::DType::kFp32;
  std::vector<float> upstream;  ///< Head: one a token.
};

/// What a head call gave over all slices.
struct HeadAnswer {
  std::vector<float> max_logits;
  std::vector<float> exp_sums;
  std::vector<float> target_logits;
  std::vector<float> hidden_gradient;  ///< fp32, slices summed in order.
};

/// The shards of one dense table in one process, with a session of every rank.
class DenseShards {
 public:
  /// `spec` as of shard 0.
  static absl::StatusOr<std::unique_ptr<DenseShards>> Create(
      const server::ShardSpec& spec, int thread_count,
      const kernels::HeadBlocks& blocks = {});

  int shard_count() const { return static_cast<int>(blocking_.size()); }
  BlockingShard& shard(int index) { return blocking_[index]; }

  /// Opens a session of a rank on every shard; later calls are of it.
  absl::Status OpenSession(int32_t rank, int64_t session);

  /// Pushes the part, or runs its head call whole.
  absl::Status Contribute(int64_t event, const DensePart& part,
                          int64_t rows_per_message = 1 << 20);
  absl::StatusOr<HeadAnswer> RunHead(int64_t event, const DensePart& part,
                                     server::HeadPurpose purpose,
                                     int64_t rows_per_message = 1 << 20);
  absl::Status Seal(int64_t event, int32_t rank, int32_t part_count);
  absl::Status Commit(int64_t event, const kernels::AdamWScalars& scalars);
  absl::StatusOr<uint64_t> RowSum(int64_t event);
  /// All weights, by row id, as bytes.
  absl::StatusOr<std::string> Rows();

 private:
  struct Slice;

  DenseShards(const server::ShardSpec& spec, int thread_count);

  absl::Status Push(int64_t event, const DensePart& part,
                    int64_t rows_per_message);
  absl::Status CommitAll(int64_t event, server::EventCommit commit);
  int64_t session(int32_t rank) const {
    return sessions_[static_cast<size_t>(rank)];
  }

  const server::ShardSpec spec_;
  std::vector<int64_t> sessions_;
  std::unique_ptr<kernels::Backend> backend_;
  std::unique_ptr<server::TimerQueue> timers_;
  std::vector<std::unique_ptr<server::Shard>> shards_;
  std::vector<BlockingShard> blocking_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SAME_BITS_DENSE_SHARDS_H_
