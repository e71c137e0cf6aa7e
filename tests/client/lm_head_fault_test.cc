// Lost messages and dead trainers.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "tests/client/head_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::Fault;
using rowhouse::testing::FaultHook;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class LmHeadFaultTest : public HeadTest {
 protected:
  // Two trainers, three events of a head part, a push and a head part; then the
  // digest. Appends the hidden gradients to `gradients`.
  absl::StatusOr<uint64_t> RunEvents(FaultHook hook,
                                     std::vector<float>& gradients) {
    Random random(701);
    TableSpec spec = Spec();
    spec.trainer_count = 2;
    spec.dense->has_bias = true;
    const HostHead host = MakeHead(spec, random);
    {
      const auto cluster = servers_.Connect(std::move(hook));
      const std::unique_ptr<Trainer> trainers[] = {JoinBy(*cluster, 0),
                                                   JoinBy(*cluster, 1)};
      for (int64_t event = 1; event <= 3; ++event) {
        for (const auto& trainer : trainers) {
          ROWHOUSE_RETURN_IF_ERROR(
              Contribute(*trainer, event, random, gradients));
        }
      }
      ROWHOUSE_RETURN_IF_ERROR(trainers[1]->WaitForEvent(3));
    }
    const uint64_t digest = DigestAt(3);
    ROWHOUSE_RETURN_IF_ERROR(cluster_->DeleteTable("t"));
    return digest;
  }

  static absl::Status Contribute(Trainer& trainer, int64_t event,
                                 Random& random,
                                 std::vector<float>& gradients) {
    const auto head = HeadOf(trainer);
    for (const int64_t token_count : {8, 0, 5}) {
      const HostBatch batch = RandomBatch(random, Spec(), token_count);
      ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<float> gradient,
                                SumStep(*head, batch, event));
      gradients.insert(gradients.end(), gradient.begin(), gradient.end());
    }
    const std::vector<int64_t> row_ids = {0, 16, 5, 0};
    const std::vector<float> rows(row_ids.size() * 8, 0.01F);
    ROWHOUSE_RETURN_IF_ERROR(
        trainer.Push(event, row_ids, std::as_bytes(std::span(rows))).status());
    if (trainer.rank() != 0) return trainer.Seal(event);
    return trainer.SealAndCommit(event, Scalars(event));
  }

  Random random_{702};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
};

// Gives `fault` to every third call of each method on each server.
class EveryThird {
 public:
  explicit EveryThird(Fault fault) : fault_(fault) {}

  Fault operator()(int32_t server, std::string_view method) {
    MutexLock lock(mutex_);
    return seen_[{server, std::string(method)}]++ % 3 == server ? fault_
                                                                : Fault::kNone;
  }

 private:
  const Fault fault_;
  Mutex mutex_;
  std::map<std::pair<int32_t, std::string>, int> seen_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LmHeadFaultTest, LostAndRepeatedPhasesLeaveTheSameBits) {
  std::vector<float> undisturbed_gradients;
  const auto undisturbed = RunEvents(nullptr, undisturbed_gradients);
  ASSERT_THAT(undisturbed, IsOk());
  for (const Fault fault :
       {Fault::kLoseRequest, Fault::kLoseAnswer, Fault::kRepeat}) {
    EveryThird hook(fault);
    std::vector<float> gradients;
    const auto digest =
        RunEvents([&](int32_t server,
                      std::string_view method) { return hook(server, method); },
                  gradients);
    ASSERT_THAT(digest, IsOk()) << static_cast<int>(fault);
    EXPECT_EQ(*digest, *undisturbed) << static_cast<int>(fault);
    EXPECT_EQ(kernels::BitsOf(gradients),
              kernels::BitsOf(undisturbed_gradients));
  }
}

TEST_F(LmHeadFaultTest, AServerThatGoesBetweenThePhasesIsFoundAgain) {
  HostHead host = MakeHead(Spec(), random_);
  int tries = 0;  // Guarded by the one call at a time on server 1.
  const auto cluster =
      servers_.Connect([&](int32_t server, std::string_view method) {
        if (server == 1 && method == "HeadGradient" && ++tries == 1) {
          return Fault::kLoseRequest;  // The stream has broken.
        }
        if (server == 1 && method == "OpenHead" && ++tries == 4) {
          servers_.SetDown(1, false);
        }
        return Fault::kNone;
      });
  const auto trainer = JoinBy(*cluster, 0);
  const HostBatch batch = RandomBatch(random_, Spec(), 7);
  const Call call(batch);
  const auto loss = HeadOf(*trainer)->Forward(
      call.get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(loss, IsOk());
  tries = 0;
  servers_.SetDown(1, true);
  const auto gradient = BackwardOf(**loss, batch, 1.0);
  ASSERT_THAT(gradient, IsOk());
  EXPECT_EQ(tries, 5);
  EXPECT_EQ(kernels::BitsOf(*gradient),
            kernels::BitsOf(
                host.AddHead(batch, Upstreams(batch, 1)).hidden_gradient));
}

TEST_F(LmHeadFaultTest, ABackwardThatFailedIsMadeAgainAndCountsOnce) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const HostBatch batch = RandomBatch(random_, Spec(), 7);
  const Call call(batch);
  const auto loss = HeadOf(*trainer)->Forward(
      call.get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(loss, IsOk());
  std::vector<std::byte> out(batch.hidden.size() * 4);
  servers_.SetDown(1, true);
  EXPECT_THAT((*loss)->Backward(1.0, out, {.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kUnavailable, "memory:1"));
  servers_.SetDown(1, false);
  EXPECT_THAT((*loss)->Backward(1.0, out), IsOk());
  EXPECT_EQ(out, rowhouse::testing::EncodeBytes(
                     kernels::DType::kFp32,
                     host.AddHead(batch, Upstreams(batch, 1)).hidden_gradient));
  EXPECT_THAT((*loss)->Backward(1.0, out),
              Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadFaultTest, ABackwardThatFailedTakesNoOtherUpstream) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random_, Spec(), 7);
  const Call call(batch);
  {
    const auto loss = head->Forward(
        call.get(), {.event = 1, .reduction = LossReduction::kSum});
    ASSERT_THAT(loss, IsOk());
    std::vector<std::byte> out(batch.hidden.size() * 4);
    servers_.SetDown(0, true);  // Slice 1 has the part.
    EXPECT_THAT(
        (*loss)->Backward(1.0, out, {.timeout = absl::Milliseconds(30)}),
        StatusIs(absl::StatusCode::kUnavailable, "memory:0"));
    servers_.SetDown(0, false);
    EXPECT_THAT((*loss)->Backward(2.0, out),
                Fails(absl::StatusCode::kAlreadyExists, "PART_DIFFERS"));
    // Now slice 0 has it otherwise.
    EXPECT_THAT((*loss)->Backward(1.0, out),
                Fails(absl::StatusCode::kAlreadyExists, "PART_DIFFERS"));
  }
  ASSERT_THAT(trainer->Discard(1), IsOk());
  EXPECT_THAT(SumStep(*head, batch, 1, 2.0), IsOk());
  host.AddHead(batch, Upstreams(batch, 2));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadFaultTest, HiddenStatesThatChangedMeanwhileAreNoticed) {
  MakeHead(Spec(), random_);
  const auto cluster = servers_.Connect([](int32_t, std::string_view method) {
    return method == "HeadGradient" ? Fault::kLoseRequest : Fault::kNone;
  });
  const auto trainer = JoinBy(*cluster, 0);
  const HostBatch batch = RandomBatch(random_, Spec(), 7);
  std::vector<std::byte> hidden = Call(batch).bytes;
  const auto loss = HeadOf(*trainer)->Forward(
      {hidden, DType::kFp32, batch.targets}, {.event = 1});
  ASSERT_THAT(loss, IsOk());
  for (std::byte& byte : hidden) byte = std::byte{0};
  std::vector<std::byte> out(hidden.size());
  EXPECT_THAT((*loss)->Backward(1.0, out),
              Fails(absl::StatusCode::kInternal, "STATISTICS_DIFFER"));
}

TEST_F(LmHeadFaultTest, ADeadTrainersFoldedPartsAreReplaced) {
  TableSpec spec = Spec();
  spec.trainer_count = 2;
  HostHead host = MakeHead(spec, random_);
  const HostBatch batches[] = {RandomBatch(random_, spec, 6),
                               RandomBatch(random_, spec, 6)};
  const auto other = Join(1);
  {
    const auto dead = Join(0);
    const auto head = HeadOf(*dead);
    // Another batch than its successor's, and one that was folded.
    ASSERT_THAT(SumStep(*head, RandomBatch(random_, spec, 9), 1), IsOk());
    ASSERT_THAT(SumStep(*HeadOf(*other), batches[1], 1), IsOk());
    ASSERT_THAT(head->FlushWeightGradient(), IsOk());
    ASSERT_THAT(HeadOf(*other)->FlushWeightGradient(), IsOk());
  }
  ASSERT_THAT(other->Seal(1), IsOk());
  const auto trainer = Join(0);
  ASSERT_THAT(SumStep(*HeadOf(*trainer), batches[0], 1), IsOk());
  for (const HostBatch& batch : batches) {
    host.AddHead(batch, Upstreams(batch, 1));
  }
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadFaultTest, ATrainerThatGoesEndsItsCalls) {
  MakeHead(Spec(), random_);
  auto trainer = Join();
  const HostBatch batch = RandomBatch(random_, Spec(), 7);
  const Call call(batch);
  const auto head = HeadOf(*trainer);
  const auto loss = head->Forward(call.get(), {.event = 1});
  ASSERT_THAT(loss, IsOk());
  trainer = nullptr;
  EXPECT_THAT(BackwardOf(**loss, batch, 1.0),
              StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(head->Evaluate(call.get(), {.event = 1}),
              StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST_F(LmHeadFaultTest, AReplacedTrainersCallsAreFenced) {
  MakeHead(Spec(), random_);
  const auto old = Join();
  const HostBatch batch = RandomBatch(random_, Spec(), 7);
  const Call call(batch);
  const auto loss = HeadOf(*old)->Forward(
      call.get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(loss, IsOk());
  const auto trainer = Join();
  EXPECT_THAT(BackwardOf(**loss, batch, 1.0),
              Fails(absl::StatusCode::kAborted, "FENCED"));
}

}  // namespace
}  // namespace rowhouse::client
