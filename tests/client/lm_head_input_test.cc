// What a head refuses.

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/client/head_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class LmHeadInputTest : public HeadTest {
 protected:
  void SetUp() override {
    MakeHead(Spec(), random_);
    trainer_ = Join();
    head_ = HeadOf(*trainer_);
  }

  // Whatever was refused, the next part is part 0, and there are no others.
  void ExpectNothingStaged() {
    const auto state = cluster_->core()->channel(1).GetEventState(
        "t", {}, cluster_->core()->Context(absl::Seconds(30)));
    ASSERT_THAT(state, IsOk());
    EXPECT_THAT(state->open_events, ::testing::IsEmpty());
    const auto loss = head_->Forward(Call(batch_).get(), {.event = 1});
    ASSERT_THAT(loss, IsOk());
    EXPECT_EQ((*loss)->part(), 0);
  }

  Random random_{703};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
  const HostBatch batch_ = RandomBatch(random_, Spec(), 7);
  const Call call_{batch_};
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<LmHead> head_;
};

TEST_F(LmHeadInputTest, ATargetOutsideOfTheVocabularyIsNamed) {
  for (const int64_t target : {int64_t{17}, int64_t{-1}, int64_t{1} << 40}) {
    HostBatch batch = batch_;
    batch.targets[3] = target;
    const auto loss = head_->Forward(Call(batch).get(), {.event = 1});
    EXPECT_THAT(loss, Fails(absl::StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
    EXPECT_THAT(
        loss, StatusIs(absl::StatusCode::kOutOfRange,
                       "target " + std::to_string(target) + " at position 3"));
  }
  ExpectNothingStaged();
}

TEST_F(LmHeadInputTest, HiddenStatesThatAreNotFiniteAreRefused) {
  for (const float value : {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    HostBatch batch = batch_;
    batch.hidden[5 * 8 + 2] = value;
    const auto loss = head_->Forward(Call(batch).get(), {.event = 1});
    EXPECT_THAT(loss, Fails(absl::StatusCode::kInvalidArgument, "NOT_FINITE"));
    EXPECT_THAT(loss, StatusIs(absl::StatusCode::kInvalidArgument, "token 5"));
  }
  ExpectNothingStaged();
}

TEST_F(LmHeadInputTest, UpstreamGradientsThatAreNotFiniteAreRefused) {
  const auto loss = head_->Forward(
      call_.get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(loss, IsOk());
  EXPECT_THAT(
      BackwardOf(**loss, batch_, std::numeric_limits<double>::infinity()),
      Fails(absl::StatusCode::kInvalidArgument, "NOT_FINITE"));
  EXPECT_THAT(BackwardOf(**loss, batch_, 1e300),  // Not in fp32.
              Fails(absl::StatusCode::kInvalidArgument, "NOT_FINITE"));
  EXPECT_THAT(BackwardOf(**loss, batch_, 1.0), IsOk());
}

TEST_F(LmHeadInputTest, WrongSizesAreNamed) {
  HeadBatch short_batch = call_.get();
  short_batch.hidden = short_batch.hidden.subspan(4);
  EXPECT_THAT(head_->Forward(short_batch, {.event = 1}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  HeadBatch half = call_.get();
  half.hidden_dtype = DType::kFp16;
  EXPECT_THAT(head_->Evaluate(half, {.event = 1}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  const HostBatch large = RandomBatch(random_, Spec(), 101);
  EXPECT_THAT(head_->Forward(Call(large).get(), {.event = 1}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_COUNT"));
  EXPECT_THAT(head_->Forward(call_.get(), {}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_EVENT"));
  EXPECT_THAT(head_->Forward(call_.get(), {.event = 1, .mean_token_count = -1}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_COUNT"));
  ExpectNothingStaged();
}

TEST_F(LmHeadInputTest, ABackwardTakesTheUpstreamOfItsReduction) {
  std::vector<std::byte> out(call_.bytes.size());
  const std::vector<float> each(7, 1.0F);
  const auto sum = head_->Forward(
      call_.get(), {.event = 1, .part = 0, .reduction = LossReduction::kSum});
  const auto none = head_->Forward(
      call_.get(), {.event = 1, .part = 1, .reduction = LossReduction::kNone});
  ASSERT_THAT(sum, IsOk());
  ASSERT_THAT(none, IsOk());
  const auto bad_count = Fails(absl::StatusCode::kInvalidArgument, "BAD_COUNT");
  EXPECT_THAT((*sum)->Backward(each, out), bad_count);
  EXPECT_THAT((*none)->Backward(1.0, out), bad_count);
  EXPECT_THAT((*none)->Backward(std::span(each).subspan(1), out), bad_count);
  EXPECT_THAT((*sum)->Backward(1.0, std::span(out).subspan(1)),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  EXPECT_THAT((*sum)->Backward(1.0, out, {.gradient_dtype = DType::kBf16}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_DTYPE"));
  EXPECT_THAT((*none)->Backward(each, out), IsOk());
  EXPECT_THAT((*sum)->Backward(1.0, out), IsOk());
}

TEST_F(LmHeadInputTest, TokensBeyondTheTablesLimitAreRefused) {
  const HostBatch batch = RandomBatch(random_, Spec(), 60);
  ASSERT_THAT(SumStep(*head_, batch, 1), IsOk());
  EXPECT_THAT(SumStep(*head_, batch, 1),
              Fails(absl::StatusCode::kResourceExhausted, "TOKENS_FULL"));
  EXPECT_THAT(SumStep(*head_, batch_, 1), IsOk());
}

TEST_F(LmHeadInputTest, ATableWithoutAHeadHasNone) {
  trainer_ = nullptr;
  for (const bool dense : {false, true}) {
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
    TableSpec spec = Spec();
    spec.dense->max_head_token_count = 0;
    if (!dense) spec.dense.reset();
    MakeTable(spec);
    EXPECT_THAT(LmHead::Create(*Join()),
                Fails(absl::StatusCode::kFailedPrecondition, "TABLE_KIND"));
  }
}

}  // namespace
}  // namespace rowhouse::client
