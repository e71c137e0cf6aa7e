// What a trainer reads.

#include <atomic>
#include <thread>
#include <vector>

#include "client/internal/router.h"
#include "kernels/hash.h"
#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::Fault;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;

class PullTest : public TrainerTest {
 protected:
  // Values differ by row and column.
  static TableSpec UniformSpec() {
    TableSpec spec = Spec();
    spec.initializer = {Initializer::Kind::kUniform, 7, 1.0F};
    return spec;
  }

  static std::vector<float> Initial(const std::vector<int64_t>& row_ids) {
    std::vector<float> rows;
    for (const int64_t row_id : row_ids) {
      for (int64_t column = 0; column < 2; ++column) {
        rows.push_back(kernels::UniformInitial(7, 1.0F, row_id, column));
      }
    }
    return rows;
  }

  static void ApplyEvent(Trainer& trainer) {
    const int64_t event = trainer.next_event();
    ASSERT_THAT(PushFloats(trainer, event, {0, 4, 8}, {1, 1, 1}), IsOk());
    ASSERT_THAT(trainer.SealAndCommit(event, SignStep()), IsOk());
    ASSERT_THAT(trainer.WaitForEvent(event), IsOk());
  }
};

TEST_F(PullTest, RowsComeInTheOrderOfTheIdsRepeatsIncluded) {
  MakeTable(UniformSpec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {11, 0, 5, 0, 4, 3, 11, 8};
  EXPECT_EQ(*PullFloats(*trainer, row_ids), Initial(row_ids));
}

TEST_F(PullTest, PullsLargerThanACallAreSplit) {
  TableSpec spec = UniformSpec();
  spec.max_pull_bytes = 2 * 8;  // Two rows.
  MakeTable(spec);
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {3, 2, 1, 0, 7, 11, 10, 0, 0, 9, 8};
  RowSet rows;
  EXPECT_EQ(*PullFloats(*trainer, row_ids, {}, &rows), Initial(row_ids));
  // By the handles of all the calls.
  std::vector<float> again(row_ids.size() * 2);
  ASSERT_THAT(trainer->Repull(rows, std::as_writable_bytes(std::span(again))),
              IsOk());
  EXPECT_EQ(again, Initial(row_ids));
}

TEST_F(PullTest, NoRowsStillHaveAnEvent) {
  MakeTable(Spec());
  const auto trainer = Join();
  ApplyEvent(*trainer);
  RowSet rows;
  EXPECT_THAT(PullFloats(*trainer, {}, {}, &rows), IsOk());
  EXPECT_EQ(rows.event(), 1);
  EXPECT_EQ(rows.row_count(), 0);
}

TEST_F(PullTest, ARowOutOfTheTableIsNamed) {
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_THAT(PullFloats(*trainer, {0, 12}),
              Fails(absl::StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
}

TEST_F(PullTest, ABufferOfAnotherSizeIsRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0, 1};
  std::vector<std::byte> out(15);
  EXPECT_THAT(trainer->Pull(row_ids, out),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "15 bytes, wanted 16: 2 rows of 8 bytes"));
}

TEST_F(PullTest, SentBeforeItsEventItLandsAfterIt) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {8, 0};
  std::vector<float> out(4);
  PendingPull pull = trainer->PullAsync(
      row_ids, std::as_writable_bytes(std::span(out)), {.exact_event = 1});
  ApplyEvent(*trainer);
  const absl::StatusOr<RowSet> rows = pull.Wait();
  ASSERT_THAT(rows, IsOk());
  EXPECT_TRUE(pull.done());
  EXPECT_EQ(rows->event(), 1);
  EXPECT_THAT(out, ElementsAre(-1, -1, -1, -1));
}

TEST_F(PullTest, AnEventThatDoesNotComeInTimeIsPending) {
  servers_.limits().max_wait = absl::Milliseconds(1);
  MakeTable(Spec());
  const auto trainer = Join();
  EXPECT_THAT(PullFloats(*trainer, {0},
                         {.timeout = absl::Milliseconds(20), .min_event = 1}),
              Fails(absl::StatusCode::kDeadlineExceeded, "EVENT_PENDING"));
}

TEST_F(PullTest, AnEventThatIsOverIsRefused) {
  MakeTable(Spec());
  const auto trainer = Join();
  ApplyEvent(*trainer);
  EXPECT_THAT(PullFloats(*trainer, {0}, {.exact_event = 0}),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(PullTest, AnswersOfDifferentEventsAreNeverMerged) {
  MakeTable(Spec());
  const auto trainer = Join();
  // The pull from server 2 is held up until event 1 is applied everywhere.
  Gate gate;
  std::atomic<int> pulls = 0;
  const auto other =
      servers_.Connect([&](int32_t server, std::string_view method) {
        if (method == "Pull" && pulls++ < 3 && server == 2) gate.Wait();
        return Fault::kNone;
      });
  absl::StatusOr<TableInfo> table = other->GetTable("t");
  ASSERT_THAT(table, IsOk());
  auto router = internal::Router::Make(other->core(), *table);
  ASSERT_THAT(router, IsOk());
  std::vector<float> out(6, -99);
  internal::PullGate places(/*shard_count=*/3, /*places=*/2, "pulls");
  absl::StatusOr<std::shared_ptr<const internal::PulledRows>> pulled;
  std::thread reader([&] {
    pulled = (*router)->Pull(
        *internal::RowSplit::Make((*router)->placement(),
                                  std::vector<int64_t>{0, 4, 8}),
        {reinterpret_cast<std::byte*>(out.data())}, {}, places,
        other->core()->Context(absl::Seconds(30)));
  });
  ApplyEvent(*trainer);
  gate.Open();
  reader.join();
  ASSERT_THAT(pulled, IsOk());
  EXPECT_EQ((*pulled)->event, 1);
  EXPECT_THAT(out, ElementsAre(-1, -1, -1, -1, -1, -1));
}

TEST_F(PullTest, AThirdPullWaitsForItsTurn) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0};
  std::vector<float> out(6);
  const auto pull = [&](int i, std::optional<int64_t> event,
                        absl::Duration timeout) {
    return trainer->PullAsync(
        row_ids, std::as_writable_bytes(std::span(out).subspan(2 * i, 2)),
        {.timeout = timeout, .min_event = event});
  };
  PendingPull first = pull(0, 1, absl::Seconds(30));
  PendingPull second = pull(1, 1, absl::Seconds(30));
  PendingPull third = pull(2, std::nullopt, absl::Seconds(30));
  ApplyEvent(*trainer);
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  EXPECT_THAT(third.Wait(), IsOk());
}

TEST_F(PullTest, DroppingAPullCancelsIt) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0};
  std::vector<float> out(2);
  {
    const PendingPull pull =
        trainer->PullAsync(row_ids, std::as_writable_bytes(std::span(out)),
                           {.timeout = absl::Hours(1), .min_event = 1});
  }
  EXPECT_THAT(PullFloats(*trainer, row_ids), IsOk());
}

TEST_F(PullTest, ATrainerThatGoesCancelsItsPulls) {
  MakeTable(Spec());
  auto trainer = Join();
  const std::vector<int64_t> row_ids = {0};
  std::vector<float> out(2);
  PendingPull pull =
      trainer->PullAsync(row_ids, std::as_writable_bytes(std::span(out)),
                         {.timeout = absl::Hours(1), .min_event = 1});
  trainer.reset();
  EXPECT_THAT(pull.Wait(), StatusIs(absl::StatusCode::kCancelled, ""));
}

TEST_F(PullTest, RowsOfAnEventThatIsOverAreNotRepulled) {
  MakeTable(Spec());
  const auto trainer = Join();
  RowSet rows;
  ASSERT_THAT(PullFloats(*trainer, {0, 4}, {}, &rows), IsOk());
  ApplyEvent(*trainer);
  std::vector<float> out(4);
  EXPECT_THAT(trainer->Repull(rows, std::as_writable_bytes(std::span(out))),
              Fails(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
}

TEST_F(PullTest, RowsTooManyForAHandleAreNamedByTheirIds) {
  TableSpec spec = UniformSpec();
  spec.max_contribution_row_count = 2;  // Handles name four rows.
  MakeTable(spec);
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0, 8, 1, 2, 3, 2, 1};
  RowSet rows;
  ASSERT_THAT(PullFloats(*trainer, row_ids, {}, &rows), IsOk());
  EXPECT_EQ(rows.rows()->handles[0], std::vector<int64_t>());
  std::vector<float> again(14);
  ASSERT_THAT(trainer->Repull(rows, std::as_writable_bytes(std::span(again))),
              IsOk());
  EXPECT_EQ(again, Initial(row_ids));
  EXPECT_THAT(trainer->Push(1, rows, std::as_bytes(std::span(again))),
              Fails(absl::StatusCode::kResourceExhausted, "CONTRIBUTION_FULL"));
}

TEST_F(PullTest, RowsWithoutAHandleAreRepulledByTheirIds) {
  MakeTable(UniformSpec());
  const auto trainer = Join();
  RowSet rows;
  ASSERT_THAT(PullFloats(*trainer, {9, 1}, {.training = false}, &rows), IsOk());
  std::vector<float> out(4);
  ASSERT_THAT(trainer->Repull(rows, std::as_writable_bytes(std::span(out))),
              IsOk());
  EXPECT_EQ(out, Initial({9, 1}));
}

}  // namespace
}  // namespace rowhouse::client
