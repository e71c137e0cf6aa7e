// The language-model head over gRPC, to real servers in this process.

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "client/internal/cluster_core.h"
#include "client/internal/one_sided_channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/adamw.h"
#include "rowhouse/cluster.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "server/server.h"
#include "tests/client/host_head.h"
#include "tests/client/path.h"
#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::DecodeBytes;
using rowhouse::testing::EncodeBytes;
using rowhouse::testing::HostBatch;
using rowhouse::testing::HostHead;
using rowhouse::testing::IsOk;
using rowhouse::testing::ListenAddress;
using rowhouse::testing::Path;
using rowhouse::testing::Random;
using rowhouse::testing::StatusIs;

/// Two servers with slices of a dense table `t` of 40 rows of 512, and its
/// oracle. The parameter: what they listen on; and whether they offer the
/// one-sided path, and the client takes it.
class LmHeadGrpcTest : public ::testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    ClusterOptions options;
    for (int32_t index = 0; index < 2; ++index) {
      servers_.push_back(Serve(index));
      ASSERT_NE(servers_.back(), nullptr);
      options.addresses.push_back(servers_.back()->address());
    }
    options.one_sided.allow = GetParam() == Path::kOneSided;
    auto cluster = Cluster::Connect(options);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    ASSERT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
    host_.SetWeights(RandomValues(kernels::DType::kBf16, 0.1F, 40 * 512));
    ASSERT_THAT(
        cluster_->ImportRows(
            "t", 0, EncodeBytes(kernels::DType::kBf16, host_.table().weights)),
        IsOk());
    auto trainer = Trainer::Join(*cluster_, "t", 0);
    ASSERT_THAT(trainer, IsOk());
    trainer_ = *std::move(trainer);
    head_ = *LmHead::Create(*trainer_);
  }

  static std::unique_ptr<server::Server> Serve(int32_t index) {
    config::v1::ServerConfig config;
    config.set_cluster_id("test");
    config.set_server_index(index);
    config.set_server_count(2);
    config.set_listen_address(ListenAddress(GetParam(), index));
    config.set_backend("cpu");
    config.set_thread_count(1);
    config.set_memory_limit_bytes(int64_t{1} << 30);
    if (GetParam() == Path::kOneSided) config.mutable_one_sided();
    auto server = server::Server::Start(config);
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }

  static TableSpec Spec() {
    TableSpec spec;
    spec.row_count = 40;
    spec.dim = 512;
    spec.row_dtype = DType::kBf16;
    spec.gradient_dtype = DType::kBf16;
    spec.shard_count = 2;
    spec.shard_bounds = {0, 13, 40};
    spec.gradient_reduction = GradientReduction::kSum;
    spec.max_contribution_row_count = 100;
    spec.max_part_count = 4;
    spec.max_pull_bytes = 1 << 20;
    spec.dense = DenseTableSpec{.main_grad_dtype = DType::kFp32,
                                .has_master = true,
                                .has_bias = true,
                                .max_head_token_count = 4000};
    return spec;
  }

  std::vector<float> RandomValues(kernels::DType dtype, float scale,
                                  int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& x : values) x = scale * random_.Normal();
    return kernels::Representable(dtype, values);
  }

  HostBatch RandomBatch(int64_t token_count,
                        kernels::DType dtype = kernels::DType::kBf16) {
    HostBatch batch{dtype, RandomValues(dtype, 1.0F, token_count * 512), {}};
    for (int64_t t = 0; t < token_count; ++t) {
      batch.targets.push_back(random_.Integer(0, 39));
    }
    return batch;
  }

  absl::StatusOr<std::unique_ptr<HeadLoss>> Forward(
      const HostBatch& batch, const std::vector<std::byte>& hidden,
      const HeadOptions& options) {
    return head_->Forward(
        {hidden, static_cast<DType>(batch.hidden_dtype), batch.targets},
        options);
  }

  Random random_{801};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
  HostHead host_{Spec(), Spec().shard_bounds};
  std::vector<std::unique_ptr<server::Server>> servers_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<LmHead> head_;
};

TEST_P(LmHeadGrpcTest, ADenseTableComesBackAsItWasMade) {
  EXPECT_EQ(cluster_->GetTable("t")->spec, Spec());
  const auto tables = cluster_->ListTables();
  ASSERT_THAT(tables, IsOk());
  ASSERT_EQ(tables->size(), 1);
  EXPECT_EQ((*tables)[0].spec, Spec());
  EXPECT_EQ(cluster_->Digest("t")->digest, host_.Digest());
  TableSpec half = Spec();
  half.row_dtype = DType::kFp16;
  EXPECT_EQ(wire::ReasonOf(cluster_->CreateTable("half", half).status()),
            "BAD_SPEC");
}

// Class weights of a slice in two messages.
TEST_P(LmHeadGrpcTest, CallsWithAllTermsGiveTheOraclesBits) {
  TableSpec spec = Spec();
  spec.row_count = 600'000;
  spec.dim = 2;
  spec.shard_bounds = {0, 270'000, 600'000};
  HostHead host(spec, spec.shard_bounds);
  ASSERT_THAT(cluster_->CreateTable("wide", spec), IsOk());
  const auto trainer = Trainer::Join(*cluster_, "wide", 0);
  ASSERT_THAT(trainer, IsOk());
  const auto head = LmHead::Create(**trainer);
  ASSERT_THAT(head, IsOk());
  rowhouse::testing::HostTerms terms;
  terms.label_smoothing = 0.3;
  terms.z_loss = 0.01;
  terms.softcap = 5.0F;
  terms.predict = true;
  for (int64_t v = 0; v < spec.row_count; ++v) {
    terms.class_weights.push_back(random_.Uniform(0.0F, 2.0F));
  }
  for (int64_t event = 1; event <= 2; ++event) {  // The first is of zeros.
    HostBatch batch{kernels::DType::kBf16,
                    RandomValues(kernels::DType::kBf16, 1.0F, 3 * 2),
                    {0, 269'999 + event, 599'999}};
    const auto hidden = EncodeBytes(batch.hidden_dtype, batch.hidden);
    const auto loss =
        (*head)->Forward({hidden, DType::kBf16, batch.targets},
                         {.event = event,
                          .reduction = LossReduction::kSum,
                          .terms = {.label_smoothing = terms.label_smoothing,
                                    .z_loss = terms.z_loss,
                                    .softcap = terms.softcap,
                                    .class_weights = terms.class_weights,
                                    .predict = true}});
    ASSERT_THAT(loss, IsOk());
    std::vector<std::byte> out(hidden.size());
    ASSERT_THAT((*loss)->Backward(1.0, out), IsOk());
    const kernels::HeadResult want = host.AddHead(batch, {1, 1, 1}, terms);
    EXPECT_EQ(kernels::BitsOf(std::vector((*loss)->token_losses().begin(),
                                          (*loss)->token_losses().end())),
              kernels::BitsOf(want.loss));
    EXPECT_EQ(
        std::vector((*loss)->predicted().begin(), (*loss)->predicted().end()),
        want.predicted);
    EXPECT_EQ(out, EncodeBytes(batch.hidden_dtype, want.hidden_gradient));
    const AdamWOptions step = {.learning_rate = 0.05};
    ASSERT_THAT((*trainer)->SealAndCommit(event, MakeAdamWScalars(step, event)),
                IsOk());
    host.Apply(step, static_cast<int>(event));
    EXPECT_EQ(cluster_->Digest("wide", event)->digest, host.Digest());
  }
}

TEST_P(LmHeadGrpcTest, CallsOfManyMessagesTrainLikeTheOracle) {
  const AdamWOptions step = {.learning_rate = 0.01};
  for (int64_t event = 1; event <= 3; ++event) {
    // 2 MB of bf16 or 4 MB of fp32 up, 4 MB down; no token, a push.
    for (const auto& [token_count, dtype] :
         {std::pair(2000, kernels::DType::kBf16),
          std::pair(0, kernels::DType::kBf16),
          std::pair(1999, kernels::DType::kFp32)}) {
      const HostBatch batch = RandomBatch(token_count, dtype);
      const auto hidden = EncodeBytes(dtype, batch.hidden);
      const auto loss = Forward(
          batch, hidden, {.event = event, .reduction = LossReduction::kSum});
      ASSERT_THAT(loss, IsOk());
      std::vector<std::byte> gradient(hidden.size());
      ASSERT_THAT((*loss)->Backward(0.5, gradient), IsOk());
      const kernels::HeadResult bits =
          host_.AddHead(batch, std::vector<float>(batch.targets.size(), 0.5F));
      EXPECT_EQ(gradient, EncodeBytes(dtype, bits.hidden_gradient));
      EXPECT_THAT((*loss)->token_losses(),
                  ::testing::ElementsAreArray(bits.loss));
      EXPECT_THAT(head_->FlushWeightGradient(), IsOk());
    }
    const std::vector<int64_t> row_ids = {39, 0, 12, 13, 39};
    const auto rows = RandomValues(kernels::DType::kBf16, 0.1F, 5 * 512);
    ASSERT_THAT(trainer_->Push(event, row_ids,
                               EncodeBytes(kernels::DType::kBf16, rows)),
                IsOk());
    host_.AddEmbedding(row_ids, rows);
    ASSERT_THAT(trainer_->SealAndCommit(event, MakeAdamWScalars(step, event)),
                IsOk());
    host_.Apply(step, static_cast<int>(event));
    EXPECT_EQ(cluster_->Digest("t", event)->digest, host_.Digest());
  }
  if (GetParam() != Path::kOneSided) return;
  for (int32_t server = 0; server < 2; ++server) {
    EXPECT_EQ(dynamic_cast<internal::OneSidedChannel&>(
                  cluster_->core()->channel(server))
                  .head_count(),
              6);
  }
}

TEST_P(LmHeadGrpcTest, EvaluationsAndDroppedCallsLeaveNothing) {
  const HostBatch batch = RandomBatch(300);
  const auto hidden = EncodeBytes(batch.hidden_dtype, batch.hidden);
  for (int round = 0; round < 20; ++round) {
    const auto loss = Forward(batch, hidden, {.event = 1});
    ASSERT_THAT(loss, IsOk());
    const auto evaluation =
        head_->Evaluate({hidden, DType::kBf16, batch.targets}, {.event = 1});
    ASSERT_THAT(evaluation, IsOk());
    EXPECT_EQ(evaluation->loss_sum / 300, (*loss)->loss());
  }
  const auto frozen =
      Forward(batch, hidden, {.event = 1, .frozen_weights = true});
  ASSERT_THAT(frozen, IsOk());
  std::vector<std::byte> gradient(hidden.size());
  EXPECT_THAT((*frozen)->Backward(1.0, gradient), IsOk());
  ASSERT_THAT(trainer_->SealAndCommit(1, SkipEvent{}), IsOk());
  EXPECT_THAT(trainer_->WaitForEvent(1), IsOk());
}

TEST_P(LmHeadGrpcTest, FaultsKeepTheirReasons) {
  HostBatch batch = RandomBatch(10);
  const auto hidden = EncodeBytes(batch.hidden_dtype, batch.hidden);
  EXPECT_EQ(wire::ReasonOf(Forward(batch, hidden, {.event = 9}).status()),
            "EVENT_AHEAD");
  const auto first = Forward(batch, hidden, {.event = 1, .part = 0});
  ASSERT_THAT(first, IsOk());
  std::vector<std::byte> gradient(hidden.size());
  ASSERT_THAT((*first)->Backward(1.0, gradient), IsOk());
  const auto other = Forward(batch, hidden, {.event = 1, .part = 0});
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(wire::ReasonOf((*other)->Backward(2.0, gradient)), "PART_DIFFERS");
  batch.hidden[512] = std::numeric_limits<float>::infinity();
  const auto bad = EncodeBytes(batch.hidden_dtype, batch.hidden);
  EXPECT_THAT(
      Forward(batch, bad, {.event = 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, "hidden state of token 1"));
}

TEST_P(LmHeadGrpcTest, AServerThatEndsACallBeforeItsInputsIsHeard) {
  // 4 MB of hidden states, which nobody reads.
  const HostBatch large = RandomBatch(4001);
  EXPECT_EQ(wire::ReasonOf(
                Forward(large, EncodeBytes(large.hidden_dtype, large.hidden),
                        {.event = 1})
                    .status()),
            "BAD_COUNT");
}

TEST_P(LmHeadGrpcTest, ACallEndsByItsDeadlineAndByItsTrainersEnd) {
  const HostBatch batch = RandomBatch(10);
  const auto hidden = EncodeBytes(batch.hidden_dtype, batch.hidden);
  EXPECT_THAT(
      Forward(batch, hidden, {.event = 2, .timeout = absl::Milliseconds(50)}),
      StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  const auto loss = Forward(batch, hidden, {.event = 1});
  ASSERT_THAT(loss, IsOk());
  trainer_ = nullptr;
  std::vector<std::byte> gradient(hidden.size());
  EXPECT_THAT((*loss)->Backward(1.0, gradient),
              StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST_P(LmHeadGrpcTest, AServerThatIsGoneEndsABackwardByItsDeadline) {
  const HostBatch batch = RandomBatch(10);
  const auto hidden = EncodeBytes(batch.hidden_dtype, batch.hidden);
  const auto loss = Forward(batch, hidden, {.event = 1});
  ASSERT_THAT(loss, IsOk());
  servers_[1].reset();
  std::vector<std::byte> gradient(hidden.size());
  EXPECT_THAT(
      (*loss)->Backward(1.0, gradient, {.timeout = absl::Milliseconds(300)}),
      ::testing::Not(IsOk()));
}

INSTANTIATE_TEST_SUITE_P(Paths, LmHeadGrpcTest, rowhouse::testing::Paths(),
                         rowhouse::testing::PathName);

}  // namespace
}  // namespace rowhouse::client
