// What a head call leaves in a contribution, and when.

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/head_fixture.h"
#include "tests/client/running_call.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class LmHeadPartTest : public HeadTest {
 protected:
  LmHeadPartTest() { RecordProperty("seed", random_.Trace()); }

  // What a shard says of rank `rank`'s contribution to the next event.
  server::ContributionState StateOf(int32_t server, int32_t rank) {
    server::Shard& shard = *(*servers_.Find(server, "t"))->shard;
    const rowhouse::testing::RunningCall call({}, shard);
    rowhouse::testing::Pending<absl::StatusOr<server::EventState>> state;
    shard.GetEventState({}, call.get(), state.Callback());
    const absl::StatusOr<server::EventState> found = state.Wait();
    EXPECT_THAT(found, IsOk());
    for (const server::OpenEventState& open : found->open_events) {
      for (const server::ContributionState& share : open.contributions) {
        if (open.event == found->event + 1 && share.trainer_rank == rank) {
          return share;
        }
      }
    }
    return {};
  }

  std::vector<float> RandomGradients(int64_t row_count) {
    return RandomValues(random_, kernels::DType::kFp32, 0.1F,
                        row_count * Spec().dim);
  }

  static absl::StatusOr<PushResult> PushRows(
      Trainer& trainer, int64_t event, const std::vector<int64_t>& row_ids,
      const std::vector<float>& rows, const PushOptions& options = {}) {
    return trainer.Push(event, row_ids, std::as_bytes(std::span(rows)),
                        options);
  }

  Random random_{601};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, random_.Trace()};
};

TEST_F(LmHeadPartTest, MicroBatchesAddUp) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    const HostBatch batch = RandomBatch(random_, Spec(), 6);
    ASSERT_THAT(SumStep(*head, batch, 1), IsOk());
    host.AddHead(batch, Upstreams(batch, 1));
  }
  EXPECT_EQ(StateOf(1, 0).part_count, 3);
  EXPECT_EQ(StateOf(1, 0).token_count, 18);
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadPartTest, EmbeddingAndHeadPartsOfATiedTableAddUp) {
  TableSpec spec = Spec();
  spec.row_dtype = DType::kBf16;
  spec.dense->has_master = true;
  spec.dense->has_bias = true;
  HostHead host = MakeHead(spec, random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const std::vector<int64_t> tokens = {3, 16, 3, 0, 5, 4, 3};
  for (int64_t event = 1; event <= 3; ++event) {
    // The embedding of the tokens is what the host says.
    std::vector<std::byte> rows(tokens.size() * 16);
    const auto pulled = trainer->Pull(tokens, rows, {.exact_event = event - 1});
    ASSERT_THAT(pulled, IsOk());
    const auto values =
        rowhouse::testing::DecodeBytes(kernels::DType::kBf16, rows);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], host.table().weights[tokens[i / 8] * 8 + i % 8]);
    }
    const HostBatch batch = RandomBatch(random_, spec, 9, DType::kBf16);
    ASSERT_THAT(SumStep(*head, batch, event), IsOk());
    host.AddHead(batch, Upstreams(batch, 1));
    const auto gradients = RandomGradients(std::ssize(tokens));
    EXPECT_EQ(trainer->Push(event, *pulled, std::as_bytes(std::span(gradients)))
                  ->part,
              1);
    host.AddEmbedding(tokens, gradients);
    ASSERT_THAT(trainer->SealAndCommit(event, Scalars(event)), IsOk());
    host.Apply(Step(), static_cast<int>(event));
    EXPECT_EQ(DigestAt(event), host.Digest());
  }
}

TEST_F(LmHeadPartTest, PartsAreFoldedByTheirNumbersAndThenByRank) {
  TableSpec spec = Spec();
  spec.trainer_count = 2;
  spec.gradient_reduction = GradientReduction::kMean;
  HostHead host = MakeHead(spec, random_);
  const auto first = Join(0);
  const auto second = Join(1);
  const auto batch = [&] { return RandomBatch(random_, spec, 5); };
  const HostBatch parts[] = {batch(), batch(), batch(), batch()};
  // By (part, rank) these are 0, 1, 2, 3; rank 1 has part 1 alone at first.
  ASSERT_THAT(SumStep(*HeadOf(*second), parts[3], 1, 1.0, 1), IsOk());
  ASSERT_THAT(SumStep(*HeadOf(*first), parts[2], 1, 1.0, 1), IsOk());
  ASSERT_THAT(SumStep(*HeadOf(*second), parts[1], 1, 1.0, 0), IsOk());
  ASSERT_THAT(SumStep(*HeadOf(*first), parts[0], 1, 1.0, 0), IsOk());
  for (const HostBatch& part : parts) host.AddHead(part, Upstreams(part, 1));
  ASSERT_THAT(second->Seal(1), IsOk());
  ASSERT_THAT(first->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1, /*divisor=*/2);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadPartTest, FrozenWeightsGetNoGradient) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random_, Spec(), 6);
  const Call call(batch);
  const auto frozen = head->Forward(
      call.get(),
      {.event = 1, .reduction = LossReduction::kSum, .frozen_weights = true});
  ASSERT_THAT(frozen, IsOk());
  const auto gradient = BackwardOf(**frozen, batch, 1.0);
  ASSERT_THAT(gradient, IsOk());
  EXPECT_EQ(StateOf(0, 0).part_count, 0);
  EXPECT_THAT(head->FlushWeightGradient(),
              Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"));
  // The hidden gradient is that of trained weights.
  HostHead other = host;
  EXPECT_EQ(kernels::BitsOf(*gradient),
            kernels::BitsOf(
                other.AddHead(batch, Upstreams(batch, 1)).hidden_gradient));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

// Two that each held a place on one slice and waited for one on the other would
// never end.
TEST_F(LmHeadPartTest, FrozenCallsAtOnceTakeTurns) {
  MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random_, Spec(), 6);
  std::vector<absl::Status> statuses(4);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] {
      const Call call(batch);
      for (int i = 0; i < 20 && status.ok(); ++i) {
        const auto loss =
            head->Forward(call.get(), {.event = 1,
                                       .reduction = LossReduction::kSum,
                                       .frozen_weights = true});
        status.Update(loss.status());
        if (loss.ok() && i % 2 == 0) {
          status.Update(BackwardOf(**loss, batch, 1.0).status());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_THAT(status, IsOk());
}

TEST_F(LmHeadPartTest, ALossWithoutABackwardLeavesNothing) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch dropped = RandomBatch(random_, Spec(), 6);
  for (int round = 0; round < 40; ++round) {  // More than may be open.
    ASSERT_THAT(head->Forward(Call(dropped).get(), {.event = 1}), IsOk());
  }
  const HostBatch batch = RandomBatch(random_, Spec(), 6);
  ASSERT_THAT(SumStep(*head, batch, 1), IsOk());  // Part 0.
  EXPECT_EQ(StateOf(0, 0).part_count, 1);
  host.AddHead(batch, Upstreams(batch, 1));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadPartTest, CallsAtOnceNameTheirParts) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batches[] = {RandomBatch(random_, Spec(), 4),
                               RandomBatch(random_, Spec(), 4)};
  const Call calls[] = {Call(batches[0]), Call(batches[1])};
  const auto first = head->Forward(
      calls[0].get(), {.event = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(head->Forward(calls[1].get(), {.event = 1}),
              Fails(absl::StatusCode::kFailedPrecondition, "PART_IN_FLIGHT"));
  EXPECT_THAT(PushRows(*trainer, 1, {1}, RandomGradients(1)),
              Fails(absl::StatusCode::kFailedPrecondition, "PART_IN_FLIGHT"));
  const auto second =
      head->Forward(calls[1].get(),
                    {.event = 1, .part = 1, .reduction = LossReduction::kSum});
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(BackwardOf(**second, batches[1], 1.0), IsOk());
  ASSERT_THAT(BackwardOf(**first, batches[0], 1.0), IsOk());
  for (const HostBatch& batch : batches) {
    host.AddHead(batch, Upstreams(batch, 1));
  }
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadPartTest, ADiscardDropsHeadPartsAndTheirFlushes) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  ASSERT_THAT(SumStep(*head, RandomBatch(random_, Spec(), 6), 1), IsOk());
  ASSERT_THAT(trainer->Discard(1), IsOk());
  EXPECT_THAT(head->FlushWeightGradient(),
              Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"));
  const HostBatch batch = RandomBatch(random_, Spec(), 6);
  ASSERT_THAT(SumStep(*head, batch, 1), IsOk());
  EXPECT_THAT(head->FlushWeightGradient(), IsOk());
  host.AddHead(batch, Upstreams(batch, 1));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  host.Apply(Step(), 1);
  EXPECT_EQ(DigestAt(1), host.Digest());
}

TEST_F(LmHeadPartTest, AnExtraFlushIsAnError) {
  MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const absl::Status extra = head->FlushWeightGradient();
  EXPECT_THAT(extra,
              Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"));
  EXPECT_THAT(extra, StatusIs(absl::StatusCode::kFailedPrecondition,
                              "rank 0 at event 1"));
  ASSERT_THAT(SumStep(*head, RandomBatch(random_, Spec(), 3), 1), IsOk());
  ASSERT_THAT(SumStep(*head, RandomBatch(random_, Spec(), 3), 1), IsOk());
  EXPECT_THAT(head->FlushWeightGradient(), IsOk());
  EXPECT_THAT(head->FlushWeightGradient(), IsOk());
  EXPECT_THAT(head->FlushWeightGradient(),
              Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"));
}

TEST_F(LmHeadPartTest, AFlushReturnsOnlyAfterItsPartWasFolded) {
  TableSpec spec = Spec();
  spec.trainer_count = 2;
  MakeHead(spec, random_);
  const auto first = Join(0);
  const auto second = Join(1);
  const auto head = HeadOf(*second);
  ASSERT_THAT(SumStep(*head, RandomBatch(random_, spec, 3), 1), IsOk());
  ASSERT_THAT(SumStep(*head, RandomBatch(random_, spec, 3), 1), IsOk());
  // Part 0 of rank 0 is to be folded before.
  EXPECT_THAT(head->FlushWeightGradient({.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_EQ(StateOf(0, 1).folded_part_count, 0);
  ASSERT_THAT(PushRows(*first, 1, {0}, RandomGradients(1)), IsOk());
  EXPECT_THAT(head->FlushWeightGradient(), IsOk());
  EXPECT_EQ(StateOf(0, 1).folded_part_count, 1);
  EXPECT_EQ(StateOf(1, 1).folded_part_count, 1);
  EXPECT_THAT(head->FlushWeightGradient({.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  ASSERT_THAT(first->Seal(1), IsOk());  // A sealed rank is passed over.
  EXPECT_THAT(head->FlushWeightGradient(), IsOk());
  EXPECT_EQ(StateOf(1, 1).folded_part_count, 2);
}

TEST_F(LmHeadPartTest, AnAppliedEventCountsAsFlushed) {
  MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  for (int64_t event = 1; event <= 5; ++event) {
    ASSERT_THAT(SumStep(*head, RandomBatch(random_, Spec(), 3), event), IsOk());
    ASSERT_THAT(trainer->SealAndCommit(event, Scalars(event)), IsOk());
  }
  for (int flush = 0; flush < 5; ++flush) {
    EXPECT_THAT(head->FlushWeightGradient(), IsOk());
  }
  EXPECT_THAT(head->FlushWeightGradient(),
              Fails(absl::StatusCode::kFailedPrecondition, "OUT_OF_ORDER"));
}

TEST_F(LmHeadPartTest, ABackwardAfterItsSealOrItsEventIsRefused) {
  MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random_, Spec(), 3);
  const Call call(batch);
  const auto loss =
      head->Forward(call.get(), {.event = 1, .reduction = LossReduction::kSum});
  const auto frozen = head->Forward(
      call.get(),
      {.event = 1, .reduction = LossReduction::kSum, .frozen_weights = true});
  ASSERT_THAT(loss, IsOk());
  ASSERT_THAT(frozen, IsOk());
  ASSERT_THAT(trainer->Seal(1), IsOk());
  EXPECT_THAT(
      BackwardOf(**loss, batch, 1.0),
      Fails(absl::StatusCode::kFailedPrecondition, "CONTRIBUTION_SEALED"));
  ASSERT_THAT(trainer->Commit(1, Scalars(1)), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  EXPECT_THAT(BackwardOf(**frozen, batch, 1.0),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(LmHeadPartTest, AForwardWaitsForTheEventBefore) {
  HostHead host = MakeHead(Spec(), random_);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random_, Spec(), 3);
  const Call call(batch);
  EXPECT_THAT(head->Forward(call.get(),
                            {.event = 2, .timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(head->Forward(call.get(), {.event = 4}),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_AHEAD"));
  ASSERT_THAT(trainer->SealAndCommit(1, SkipEvent{}), IsOk());
  EXPECT_THAT(SumStep(*head, batch, 2), IsOk());
}

TEST_F(LmHeadPartTest, AnEventTakesTheScalarsOfItsTable) {
  MakeHead(Spec(), random_);
  const auto trainer = Join();
  EXPECT_THAT(trainer->Commit(1, RowAdamScalars{}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_COMMIT"));
  // A decision too, that comes from the gradient's statistics.
  ASSERT_THAT(PushRows(*trainer, 1, {3}, std::vector<float>(8, 2.0F)), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1,
                                     [](const GradientStatistics& statistics)
                                         -> absl::StatusOr<EventUpdate> {
                                       EXPECT_EQ(statistics.sum_of_squares, 32);
                                       return Scalars(1);
                                     }),
              IsOk());
  EXPECT_THAT(trainer->WaitForEvent(1), IsOk());
}

}  // namespace
}  // namespace rowhouse::client
