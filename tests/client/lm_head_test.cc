// What a head call computes: losses, hidden gradients and weight gradients.

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/client/head_fixture.h"
#include "tests/client/near_oracle.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::ToKernel;
using ::testing::Each;
using ::testing::ElementsAre;

// What results in `compute`, or narrowed to `to`, may differ from the fp64
// oracle, as a share of the oracle's largest value: each term of a gradient is
// rounded to the compute type, and so is the result; the terms' absolute values
// add up to less than eight times the largest sum for the sizes here. fp32
// takes in what the logits' own roundings do to the exponentials: some hundred
// roundings.
double Tolerance(kernels::DType compute) {
  return (compute == kernels::DType::kFp32 ? 128 : 8) * HalfLastPlace(compute);
}

HeadOptions OptionsOf(Way way, int64_t event) {
  HeadOptions options{.event = event};
  options.reduction = way == Way::kNone  ? LossReduction::kNone
                      : way == Way::kSum ? LossReduction::kSum
                                         : LossReduction::kMean;
  if (way == Way::kMeanOfStated) options.mean_token_count = kStatedCount;
  return options;
}

class LmHeadTest : public HeadTest {
 protected:
  // One event of one call, beside the oracle.
  void RunWay(Way way, int64_t event, const TableSpec& spec,
              const HostBatch& batch, Random& random, Trainer& trainer,
              HostHead& host) {
    const auto head = HeadOf(trainer);
    const Call call(batch);
    const auto loss = head->Forward(call.get(), OptionsOf(way, event));
    ASSERT_THAT(loss, IsOk());
    const double upstream = way == Way::kNone ? 1 : random.Uniform(0.5F, 2.0F);
    const double divisor = way == Way::kMeanOfOwn
                               ? static_cast<double>(std::max<int64_t>(
                                     (*loss)->valid_token_count(), 1))
                           : way == Way::kMeanOfStated ? kStatedCount
                                                       : 1;
    std::vector<float> each =
        Upstreams(batch, static_cast<float>(upstream / divisor));
    std::vector<float> sent = each;
    if (way == Way::kNone) {
      for (size_t t = 0; t < each.size(); ++t) {
        sent[t] = random.Uniform(0.5F, 1.5F);  // Also where it is ignored.
        if (each[t] != 0) each[t] = sent[t];
      }
    }
    const auto exact = host.Exact(batch, each);
    ExpectLosses(**loss, way, divisor, exact);
    const auto gradient = way == Way::kNone
                              ? BackwardOf(**loss, batch, std::span(sent))
                              : BackwardOf(**loss, batch, upstream);
    ASSERT_THAT(gradient, IsOk());
    const auto compute =
        kernels::ComputeType(batch.hidden_dtype, ToKernel(spec.row_dtype));
    ExpectNear(*gradient, exact.hidden_gradient,
               std::max(Tolerance(compute), Tolerance(batch.hidden_dtype)),
               "hidden gradient");
    // The kernels, slice by slice: the same bits.
    const kernels::HeadResult bits = host.AddHead(batch, each);
    EXPECT_EQ(kernels::BitsOf(*gradient),
              kernels::BitsOf(kernels::Representable(batch.hidden_dtype,
                                                     bits.hidden_gradient)));
    ExpectNear(host.table().main_grad, exact.weight_gradient,
               Tolerance(compute), "weight gradient");
    if (spec.dense->has_bias) {
      ExpectNear(host.table().bias_grad, exact.bias_gradient,
                 Tolerance(kernels::DType::kFp32), "bias gradient");
    }
    ASSERT_THAT(trainer.SealAndCommit(event, Scalars(event)), IsOk());
    host.Apply(Step(), static_cast<int>(event));
    EXPECT_EQ(DigestAt(event), host.Digest());
  }

  static void ExpectLosses(const HeadLoss& loss, Way way, double divisor,
                           const reference::CrossEntropyResult& exact) {
    ExpectNear(loss.token_losses(), exact.loss,
               Tolerance(kernels::DType::kFp32), "loss");
    double sum = 0;  // In token order, in fp64.
    for (const float x : loss.token_losses()) sum += x;
    if (way == Way::kNone) {
      EXPECT_TRUE(std::isnan(loss.loss()));
    } else {
      EXPECT_EQ(loss.loss(), sum / divisor);
    }
  }
};

struct Types {
  DType hidden;
  DType weight;
};

TEST_F(LmHeadTest, EqualsTheOracleForAllTypesReductionsBiasesAndSlices) {
  Random random(501);
  SCOPED_TRACE(random.Trace());
  const std::vector<Types> all_types = {
      {DType::kFp32, DType::kFp32}, {DType::kBf16, DType::kBf16},
      {DType::kFp16, DType::kFp32}, {DType::kBf16, DType::kFp32},
      {DType::kFp16, DType::kBf16}, {DType::kFp32, DType::kBf16}};
  const std::vector<std::vector<int64_t>> all_bounds = {
      {0, 24}, {0, 7, 24}, {0, 8, 16, 24}, {0, 8, 17}, {0, 5, 5, 17}};
  for (const Types& types : all_types) {
    for (const std::vector<int64_t>& bounds : all_bounds) {
      for (const bool has_bias : {false, true}) {
        TableSpec spec = Spec();
        spec.row_count = bounds.back();
        spec.row_dtype = types.weight;
        spec.shard_bounds = bounds;
        spec.shard_count = static_cast<int32_t>(bounds.size()) - 1;
        spec.dense->has_bias = has_bias;  // 0 in the first event alone.
        spec.dense->has_master = has_bias;
        HostHead host = MakeHead(spec, random);
        {
          const auto trainer = Join();
          int64_t event = 0;
          for (const Way way :
               {Way::kNone, Way::kSum, Way::kMeanOfOwn, Way::kMeanOfStated}) {
            const HostBatch batch =
                RandomBatch(random, spec, random.Integer(1, 20), types.hidden);
            RunWay(way, ++event, spec, batch, random, *trainer, host);
          }
        }
        ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
      }
    }
  }
}

TEST_F(LmHeadTest, TakesNoTokenAndOne) {
  Random random(502);
  SCOPED_TRACE(random.Trace());
  const TableSpec spec = Spec();
  HostHead host = MakeHead(spec, random);
  const auto trainer = Join();
  for (const int64_t token_count : {0, 1, 0}) {
    const int64_t event = trainer->next_event();
    HostBatch batch = RandomBatch(random, spec, token_count);
    for (int64_t& target : batch.targets) target = 3;
    const auto head = HeadOf(*trainer);
    const Call call(batch);
    const auto loss = head->Forward(call.get(), {.event = event});
    ASSERT_THAT(loss, IsOk());
    EXPECT_EQ((*loss)->token_losses().size(), token_count);
    if (token_count == 0) {
      EXPECT_EQ((*loss)->loss(), 0);
    }
    const auto gradient = BackwardOf(**loss, batch, 1.0);
    ASSERT_THAT(gradient, IsOk());
    EXPECT_EQ(gradient->size(), token_count * spec.dim);
    EXPECT_THAT(head->FlushWeightGradient(), IsOk());
    host.AddHead(batch, Upstreams(batch, 1.0F));
    ASSERT_THAT(trainer->SealAndCommit(event, Scalars(event)), IsOk());
    host.Apply(Step(), static_cast<int>(event));
    EXPECT_EQ(DigestAt(event), host.Digest());
    EXPECT_EQ(
        head->Evaluate(call.get(), {.event = event + 1})->valid_token_count,
        token_count);
  }
}

TEST_F(LmHeadTest, GivesExactZerosWhenAllTokensAreIgnored) {
  Random random(503);
  SCOPED_TRACE(random.Trace());
  TableSpec spec = Spec();
  spec.dense->has_bias = true;
  HostHead host = MakeHead(spec, random);
  const auto trainer = Join();
  HostBatch batch = RandomBatch(random, spec, 7);
  batch.targets.assign(7, kIgnored);
  const auto head = HeadOf(*trainer);
  const Call call(batch);
  const auto loss = head->Forward(call.get(), {.event = 1});
  ASSERT_THAT(loss, IsOk());
  EXPECT_EQ((*loss)->loss(), 0);
  EXPECT_EQ((*loss)->valid_token_count(), 0);
  EXPECT_THAT((*loss)->token_losses(), Each(0.0F));
  const auto gradient = BackwardOf(**loss, batch, 65536.0);
  ASSERT_THAT(gradient, IsOk());
  EXPECT_THAT(kernels::BitsOf(*gradient), Each(0U));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);  // As if there had been no call.
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadTest, TakesAnyValueAsTheIgnoredOne) {
  Random random(504);
  SCOPED_TRACE(random.Trace());
  MakeHead(Spec(), random);
  const auto trainer = Join();
  HostBatch batch = RandomBatch(random, Spec(), 3);
  batch.targets = {2, 16, 2};
  const Call call(batch);
  const auto loss =
      HeadOf(*trainer)->Forward(call.get(), {.event = 1, .ignore_index = 2});
  ASSERT_THAT(loss, IsOk());
  EXPECT_EQ((*loss)->valid_token_count(), 1);
  EXPECT_EQ((*loss)->token_losses()[0], 0.0F);
  EXPECT_GT((*loss)->token_losses()[1], 0.0F);
}

TEST_F(LmHeadTest, FindsTargetsAtSliceBorders) {
  TableSpec spec = Spec();
  spec.row_count = 4;
  spec.dim = 4;
  HostBatch batch;
  batch.hidden = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  batch.targets = {0, 1, 2, 3};
  for (const std::vector<int64_t>& bounds : std::vector<std::vector<int64_t>>{
           {0, 4}, {0, 2, 4}, {0, 1, 4}, {0, 3, 4}, {0, 1, 2, 4}}) {
    spec.shard_bounds = bounds;
    spec.shard_count = static_cast<int32_t>(bounds.size()) - 1;
    HostHead host = OracleOf(spec);
    MakeTableOf(spec, host);
    {
      const auto trainer = Join();
      const Call call(batch);
      const auto loss = HeadOf(*trainer)->Forward(
          call.get(), {.event = 1, .reduction = LossReduction::kSum});
      ASSERT_THAT(loss, IsOk());
      EXPECT_THAT((*loss)->token_losses(), Each(std::log(4.0F)));
      ASSERT_THAT(BackwardOf(**loss, batch, 1.0), IsOk());
      ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
      host.AddHead(batch, {1, 1, 1, 1});
      EXPECT_EQ(host.table().main_grad[0], -0.75F);
      EXPECT_EQ(host.table().main_grad[1], 0.25F);
      host.Apply(Step(), 1);
      EXPECT_EQ(DigestAt(1), host.Digest());
    }
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
}

TEST_F(LmHeadTest, SurvivesALossScaleOf65536InFp16) {
  TableSpec spec = Spec();
  spec.row_count = 2;
  spec.dim = 1;
  spec.shard_bounds = {0, 1, 2};
  HostHead host = OracleOf(spec);
  MakeTableOf(spec, host);
  HostBatch batch{kernels::DType::kFp16, {1, 1, 1, 1}, {0, 0, 0, 0}};
  const auto trainer = Join();
  const Call call(batch);
  const auto loss = HeadOf(*trainer)->Forward(call.get(), {.event = 1});
  ASSERT_THAT(loss, IsOk());
  EXPECT_THAT(BackwardOf(**loss, batch, 65536.0).value(), Each(0.0F));
  host.AddHead(batch, std::vector<float>(4, 16384.0F));
  EXPECT_THAT(host.table().main_grad, ElementsAre(-32768.0F, 32768.0F));
  AdamWOptions step = Step();
  step.gradient_scale = 1.0 / 65536;
  ASSERT_THAT(trainer->SealAndCommit(1, MakeAdamWScalars(step, 1)), IsOk());
  host.Apply(step, 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadTest, SumsPartsOfSlicesThatFp16CannotHold) {
  TableSpec spec = Spec();
  spec.row_count = 2;
  spec.dim = 1;
  spec.shard_bounds = {0, 1, 2};
  HostHead host = OracleOf(spec);
  host.SetWeights({65504.0F, 65504.0F});
  MakeTableOf(spec, host);
  HostBatch batch{kernels::DType::kFp16, {0.0F}, {0}};
  const auto trainer = Join();
  // -0.5 * 8 * 65504 of the one slice and its opposite of the other.
  EXPECT_THAT(SumStep(*HeadOf(*trainer), batch, 1, 8.0).value(),
              ElementsAre(0.0F));
}

TEST_F(LmHeadTest, GivesTheHiddenGradientUnroundedOnRequest) {
  Random random(505);
  SCOPED_TRACE(random.Trace());
  const TableSpec spec = Spec();
  HostHead host = MakeHead(spec, random);
  const auto trainer = Join();
  const HostBatch batch = RandomBatch(random, spec, 5, DType::kBf16);
  const Call call(batch);
  const auto loss = HeadOf(*trainer)->Forward(
      call.get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(loss, IsOk());
  const auto gradient = BackwardOf(**loss, batch, 1.0, DType::kFp32);
  ASSERT_THAT(gradient, IsOk());
  EXPECT_EQ(kernels::BitsOf(*gradient),
            kernels::BitsOf(
                host.AddHead(batch, Upstreams(batch, 1)).hidden_gradient));
}

TEST_F(LmHeadTest, EvaluatesWithoutATrace) {
  Random random(506);
  SCOPED_TRACE(random.Trace());
  const TableSpec spec = Spec();
  HostHead host = MakeHead(spec, random);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random, spec, 9);
  const Call call(batch);
  const auto loss =
      head->Forward(call.get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(loss, IsOk());
  const auto evaluation =
      head->Evaluate(call.get(), {.event = 1, .token_losses = true});
  ASSERT_THAT(evaluation, IsOk());
  EXPECT_EQ(evaluation->loss_sum, (*loss)->loss());
  EXPECT_EQ(evaluation->valid_token_count, (*loss)->valid_token_count());
  EXPECT_THAT(evaluation->token_losses,
              ::testing::ElementsAreArray((*loss)->token_losses()));
  EXPECT_THAT(head->Evaluate(call.get(), {.event = 1})->token_losses,
              ::testing::IsEmpty());
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
  // The weights of event 0 are gone.
  EXPECT_THAT(head->Evaluate(call.get(), {.event = 1}),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

}  // namespace
}  // namespace rowhouse::client
