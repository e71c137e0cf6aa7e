// Recorded head calls, applied again.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/internal/head_call.h"
#include "client/internal/head_gradient_sum.h"
#include "client/internal/trainer_core.h"
#include "client/push_log/push_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/head_fixture.h"
#include "tests/client/push_log/push_log_fixture.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::push_log {
namespace {

using rowhouse::testing::InMemoryCluster;
using rowhouse::testing::IsOk;
using rowhouse::testing::Random;
using ::testing::HasSubstr;

/// A table of two slices with a bias, tied to an embedding; two trainers.
class HeadReplayTest : public HeadTest {
 protected:
  HeadReplayTest() {
    spec_ = HeadTest::Spec();
    spec_.trainer_count = 2;
    spec_.initializer = {Initializer::Kind::kUniform, 3, 0.5F};
    spec_.dense->has_bias = true;
  }
  ~HeadReplayTest() override { std::remove(path_.c_str()); }

  void Contribute(Trainer& trainer, int64_t event, Random& random) {
    const std::unique_ptr<LmHead> head = HeadOf(trainer);
    ASSERT_THAT(SumStep(*head, RandomBatch(random, spec_, 5), event), IsOk());
    const std::vector<int64_t> row_ids = {2, 16, 2};
    const std::vector<float> rows =
        RandomValues(random, kernels::DType::kFp32, 1, 3 * spec_.dim);
    ASSERT_THAT(trainer.Push(event, row_ids, std::as_bytes(std::span(rows))),
                IsOk());
    // No token, and none that counts.
    ASSERT_THAT(SumStep(*head, RandomBatch(random, spec_, 0), event), IsOk());
    HostBatch ignored = RandomBatch(random, spec_, 2, DType::kBf16);
    ignored.targets = {kIgnored, kIgnored};
    ASSERT_THAT(SumStep(*head, ignored, event), IsOk());
    ASSERT_NO_FATAL_FAILURE(StepWithAllTerms(*head, event, random));
    ASSERT_THAT(trainer.Seal(event), IsOk());
  }

  void StepWithAllTerms(LmHead& head, int64_t event, Random& random) {
    const HostBatch batch = RandomBatch(random, spec_, 4);
    const Call call(batch);
    const std::vector<float> weights =
        RandomValues(random, kernels::DType::kFp32, 1, spec_.row_count);
    std::vector<float> class_weights;
    for (const float w : weights) class_weights.push_back(std::abs(w));
    const auto loss =
        head.Forward(call.get(), {.event = event,
                                  .terms = {.label_smoothing = 0.2,
                                            .z_loss = 0.01,
                                            .softcap = 3.0F,
                                            .class_weights = class_weights}});
    ASSERT_THAT(loss, IsOk());
    ASSERT_THAT(BackwardOf(**loss, batch, 1.0), IsOk());
  }

  void RecordTraining(Random& random) {
    MakeTable(spec_);
    RunningRecord record(*cluster_, path_, {.last_event = 3});
    const auto first = Join(0);
    const auto second = Join(1);
    for (int64_t event = 1; event <= 3; ++event) {
      Contribute(*second, event, random);
      Contribute(*first, event, random);
      ASSERT_THAT(first->Commit(event, Scalars(event)), IsOk());
      ASSERT_THAT(first->WaitForEvent(event), IsOk());
    }
    ASSERT_THAT(record.Wait(), IsOk());
    EXPECT_EQ(record.Wait()->counts.head_part_count, 3 * 2 * 4);
    EXPECT_EQ(record.Wait()->counts.token_count, 3 * 2 * 11);
  }

  TableSpec spec_;
  const std::string path_ =
      ::testing::TempDir() + "head_replay_" + std::to_string(getpid()) + ".log";
};

TEST_F(HeadReplayTest, TheSameSlicesGiveTheSameDigest) {
  Random random(41);
  SCOPED_TRACE(random.Trace());
  RecordTraining(random);
  InMemoryCluster servers(2);
  const std::unique_ptr<Cluster> cluster = servers.Connect();
  const auto replayed = Replay(*cluster, "u", path_);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->digests_equal(), true);
  EXPECT_EQ(replayed->digest.digest, DigestAt(3));
  EXPECT_TRUE(replayed->has_head_parts);
  EXPECT_EQ(replayed->differing_head_part_count, 0);
  EXPECT_THAT(replayed->warning,
              HasSubstr("the same backend, device and library versions"));
  EXPECT_THAT(replayed->warning, HasSubstr("Recorded on: cpu"));
}

// A client whose exponentials are not ours, as one in another language.
TEST_F(HeadReplayTest, ATrainersOwnSumsGiveItsOwnDigest) {
  Random random(43);
  SCOPED_TRACE(random.Trace());
  spec_.trainer_count = 1;
  MakeTable(spec_);
  RunningRecord record(*cluster_, path_, {.last_event = 1});
  const auto trainer = Join(0);
  const HostBatch batch = RandomBatch(random, spec_, 5);
  const Call tokens(batch);
  internal::TrainerCore& core = *trainer->core();
  const internal::HeadHeader header{.table = "t",
                                    .trainer = core.session(),
                                    .event = 1,
                                    .part = 0,
                                    .token_count = 5,
                                    .hidden_dtype = tokens.get().hidden_dtype,
                                    .ignore_index = kIgnored,
                                    .dim = spec_.dim};
  const auto number = core.contributions().BeginPart(1, 0);
  ASSERT_THAT(number, IsOk());
  internal::HeadCall call(core.cluster(), core.router().placement(), header,
                          {tokens.get().targets, tokens.get().hidden, {}}, {});
  internal::HeadGradientSum gradient(core.router().shard_count(), 5, spec_.dim);
  const internal::CallContext context = core.Context(absl::Seconds(30));
  ASSERT_THAT(call.ComputeLosses(context), IsOk());
  std::vector<float> sums(call.exp_sums().begin(), call.exp_sums().end());
  for (float& sum : sums) sum *= 1.001F;
  std::vector<float> upstream;
  for (int64_t t = 0; t < 5; ++t) upstream.push_back(call.is_valid(t) ? 1 : 0);
  ASSERT_THAT(
      call.SumGradients(internal::HeadMerged{call.max_logits(), sums, upstream},
                        gradient, context),
      IsOk());
  core.contributions().EndPart(1, *number, true);
  ASSERT_THAT(trainer->Seal(1), IsOk());
  ASSERT_THAT(trainer->Commit(1, Scalars(1)), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  ASSERT_THAT(record.Wait(), IsOk());

  InMemoryCluster servers(2);
  const std::unique_ptr<Cluster> cluster = servers.Connect();
  const auto replayed = Replay(*cluster, "u", path_);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->digest.digest, DigestAt(1));
  EXPECT_EQ(replayed->digests_equal(), true);
  EXPECT_EQ(replayed->differing_head_part_count, 0);
}

TEST_F(HeadReplayTest, OtherSlicesAreSaidToDiffer) {
  Random random(42);
  RecordTraining(random);
  InMemoryCluster servers(3);
  const std::unique_ptr<Cluster> cluster = servers.Connect();
  std::vector<std::string> told;
  const auto replayed =
      Replay(*cluster, "u", path_,
             {.shard_count = 3,
              .progress =
                  [&](const ReplayProgress& now) {
                    if (now.event == 1) told.push_back("event 1");
                  },
              .warn = [&](const std::string& text) { told.push_back(text); }});
  ASSERT_THAT(replayed, IsOk());
  EXPECT_THAT(told, ::testing::ElementsAre(
                        HasSubstr("3 shards, recorded with 2"), "event 1"));
  EXPECT_EQ(replayed->last_event, 3);
  EXPECT_THAT(replayed->warning,
              HasSubstr("slices differ here: 3 shards, recorded with 2"));
}

}  // namespace
}  // namespace rowhouse::client::push_log
