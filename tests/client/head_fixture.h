#ifndef ROWHOUSE_TESTS_CLIENT_HEAD_FIXTURE_H_
#define ROWHOUSE_TESTS_CLIENT_HEAD_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rowhouse/adamw.h"
#include "rowhouse/lm_head.h"
#include "tests/client/host_head.h"
#include "tests/client/in_memory_convert.h"
#include "tests/client/trainer_fixture.h"
#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"

namespace rowhouse::client {

/// Dense table `t` on up to three servers, with its oracle.
class HeadTest : public TrainerTest {
 protected:
  using HostBatch = rowhouse::testing::HostBatch;
  using HostHead = rowhouse::testing::HostHead;
  using Random = rowhouse::testing::Random;
  static constexpr int64_t kIgnored = rowhouse::testing::kIgnored;

  /// 17 rows of 8 fp32 in two slices of 5 and 12.
  static TableSpec Spec() {
    TableSpec spec;
    spec.row_count = 17;
    spec.dim = 8;
    spec.row_dtype = DType::kFp32;
    spec.gradient_dtype = DType::kFp32;
    spec.shard_count = 2;
    spec.shard_bounds = {0, 5, 17};
    spec.gradient_reduction = GradientReduction::kSum;
    spec.max_contribution_row_count = 100;
    spec.max_part_count = 8;
    spec.dense = DenseTableSpec{.max_head_token_count = 100};
    return spec;
  }

  static HostHead OracleOf(const TableSpec& spec) {
    return HostHead(spec, spec.shard_bounds);
  }

  static AdamWOptions Step() {
    return {.learning_rate = 0.05, .weight_decay = 0.01};
  }
  static AdamWScalars Scalars(int64_t event) {
    return MakeAdamWScalars(Step(), event);
  }

  static std::vector<float> RandomValues(Random& random, kernels::DType dtype,
                                         float scale, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& x : values) x = scale * random.Normal();
    return kernels::Representable(dtype, values);
  }

  static HostBatch RandomBatch(Random& random, const TableSpec& spec,
                               int64_t token_count,
                               DType hidden_dtype = DType::kFp32) {
    HostBatch batch;
    batch.hidden_dtype = rowhouse::testing::ToKernel(hidden_dtype);
    batch.hidden =
        RandomValues(random, batch.hidden_dtype, 1.0F, token_count * spec.dim);
    for (int64_t t = 0; t < token_count; ++t) {
      batch.targets.push_back(random.Chance(0.2)
                                  ? kIgnored
                                  : random.Integer(0, spec.row_count - 1));
    }
    return batch;
  }

  /// Makes the table, of random weights, and its oracle.
  HostHead MakeHead(const TableSpec& spec, Random& random) {
    HostHead host = OracleOf(spec);
    const kernels::DType dtype = rowhouse::testing::ToKernel(spec.row_dtype);
    host.SetWeights(
        RandomValues(random, dtype, 0.3F, spec.row_count * spec.dim));
    MakeTableOf(spec, host);
    return host;
  }

  void MakeTableOf(const TableSpec& spec, const HostHead& host) {
    MakeTable(spec);
    ASSERT_THAT(
        cluster_->ImportRows("t", 0,
                             rowhouse::testing::EncodeBytes(
                                 rowhouse::testing::ToKernel(spec.row_dtype),
                                 host.table().weights)),
        rowhouse::testing::IsOk());
  }

  static std::unique_ptr<LmHead> HeadOf(const Trainer& trainer) {
    absl::StatusOr<std::unique_ptr<LmHead>> head = LmHead::Create(trainer);
    EXPECT_THAT(head, rowhouse::testing::IsOk());
    return head.ok() ? *std::move(head) : nullptr;
  }

  /// A batch in the form of a call; views `bytes` and `batch`.
  struct Call {
    explicit Call(const HostBatch& host)
        : batch(host),
          bytes(
              rowhouse::testing::EncodeBytes(host.hidden_dtype, host.hidden)) {}
    HeadBatch get() const {
      return {bytes, static_cast<DType>(batch.hidden_dtype), batch.targets};
    }
    const HostBatch batch;
    const std::vector<std::byte> bytes;
  };

  /// The hidden gradient of one scalar or of one upstream a token, in the
  /// hidden states' type.
  template <typename Upstream>
  static absl::StatusOr<std::vector<float>> BackwardOf(
      HeadLoss& loss, const HostBatch& batch, const Upstream& upstream,
      std::optional<DType> dtype = std::nullopt) {
    const kernels::DType type = dtype.has_value()
                                    ? rowhouse::testing::ToKernel(*dtype)
                                    : batch.hidden_dtype;
    std::vector<std::byte> out(batch.hidden.size() *
                               static_cast<size_t>(kernels::SizeOf(type)));
    ROWHOUSE_RETURN_IF_ERROR(
        loss.Backward(upstream, out, {.gradient_dtype = dtype}));
    return rowhouse::testing::DecodeBytes(type, out);
  }

  /// Forward and backward, of the sum times `upstream`.
  static absl::StatusOr<std::vector<float>> SumStep(
      LmHead& head, const HostBatch& batch, int64_t event,
      double upstream = 1.0, std::optional<int32_t> part = std::nullopt) {
    const Call call(batch);
    ROWHOUSE_ASSIGN_OR_RETURN(
        const std::unique_ptr<HeadLoss> loss,
        head.Forward(
            call.get(),
            {.event = event, .part = part, .reduction = LossReduction::kSum}));
    return BackwardOf(*loss, batch, upstream);
  }

  /// One value for each token, 0 for the ignored ones.
  static std::vector<float> Upstreams(const HostBatch& batch, float each) {
    std::vector<float> upstream;
    for (const int64_t target : batch.targets) {
      upstream.push_back(target == kIgnored ? 0.0F : each);
    }
    return upstream;
  }

  uint64_t DigestAt(int64_t event) {
    const absl::StatusOr<TableDigest> digest = cluster_->Digest("t", event);
    EXPECT_THAT(digest, rowhouse::testing::IsOk());
    return digest.ok() ? digest->digest : 0;
  }
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_TESTS_CLIENT_HEAD_FIXTURE_H_
