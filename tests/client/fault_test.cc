// What lost, repeated and delayed calls may not change.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/mutex.h"
#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::Fault;
using rowhouse::testing::FaultHook;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

// Gives `fault` to the first calls of each method on each server.
class FirstCalls {
 public:
  FirstCalls(Fault fault, int count) : fault_(fault), count_(count) {}

  Fault operator()(int32_t server, std::string_view method) {
    MutexLock lock(mutex_);
    int& seen = seen_[{server, std::string(method)}];
    return seen++ < count_ ? fault_ : Fault::kNone;
  }

 private:
  const Fault fault_;
  const int count_;
  Mutex mutex_;
  std::map<std::pair<int32_t, std::string>, int> seen_ ABSL_GUARDED_BY(mutex_);
};

class FaultTest : public TrainerTest {
 protected:
  // Two trainers, three events, on calls that go as `hook` says.
  absl::StatusOr<uint64_t> RunEvents(FaultHook hook) {
    const auto cluster = servers_.Connect(std::move(hook));
    ROWHOUSE_RETURN_IF_ERROR(cluster->CreateTable("t", Spec(2)).status());
    std::vector<std::unique_ptr<Trainer>> trainers;
    for (const int32_t rank : {0, 1})
      trainers.push_back(JoinBy(*cluster, rank));
    for (int64_t event = 1; event <= 3; ++event) {
      for (const auto& trainer : trainers) {
        ROWHOUSE_RETURN_IF_ERROR(Contribute(*trainer, event));
      }
    }
    ROWHOUSE_RETURN_IF_ERROR(trainers[1]->WaitForEvent(3));
    trainers.clear();
    ROWHOUSE_ASSIGN_OR_RETURN(const TableDigest digest, cluster_->Digest("t"));
    EXPECT_EQ(digest.event, 3);
    ROWHOUSE_RETURN_IF_ERROR(cluster_->DeleteTable("t"));
    return digest.digest;
  }

  static absl::Status Contribute(Trainer& trainer, int64_t event) {
    const std::vector<int64_t> row_ids = {0, 9, 5, 0, trainer.rank()};
    std::vector<float> rows(10);
    ROWHOUSE_ASSIGN_OR_RETURN(
        const RowSet pulled,
        trainer.Pull(row_ids, std::as_writable_bytes(std::span(rows)),
                     {.exact_event = event - 1}));
    for (float& value : rows) value = value * 0.5F + 1;
    ROWHOUSE_RETURN_IF_ERROR(
        trainer.Push(event, pulled, std::as_bytes(std::span(rows))).status());
    ROWHOUSE_RETURN_IF_ERROR(
        PushFloats(trainer, event, {11, 0}, {2, 1}).status());
    if (trainer.rank() != 0) return trainer.Seal(event);
    return trainer.SealAndCommit(event,
                                 RowAdamScalars{0.1, 0.01, 0.9, 1e-8, 1.0});
  }
};

TEST_F(FaultTest, LostAndRepeatedCallsLeaveTheSameBits) {
  const absl::StatusOr<uint64_t> undisturbed = RunEvents(nullptr);
  ASSERT_THAT(undisturbed, IsOk());
  for (const Fault fault :
       {Fault::kLoseRequest, Fault::kLoseAnswer, Fault::kRepeat}) {
    FirstCalls hook(fault, 3);
    const absl::StatusOr<uint64_t> digest =
        RunEvents([&](int32_t server, std::string_view method) {
          return hook(server, method);
        });
    ASSERT_THAT(digest, IsOk()) << static_cast<int>(fault);
    EXPECT_EQ(*digest, *undisturbed) << static_cast<int>(fault);
  }
}

TEST_F(FaultTest, AServerThatComesBackIsFoundAgain) {
  MakeTable(Spec());
  int tries = 0;  // Guarded by the one call at a time on server 1.
  const auto cluster =
      servers_.Connect([&](int32_t server, std::string_view method) {
        if (server == 1 && method == "Push" && ++tries == 5) {
          servers_.SetDown(1, false);
        }
        return Fault::kNone;
      });
  const auto trainer = JoinBy(*cluster, 0);
  servers_.SetDown(1, true);
  EXPECT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 1}), IsOk());
  EXPECT_EQ(tries, 5);
}

TEST_F(FaultTest, AServerThatStaysAwayEndsTheCallByItsDeadline) {
  MakeTable(Spec());
  const auto trainer = Join();
  servers_.SetDown(1, true);
  EXPECT_THAT(PushFloats(*trainer, 1, {0, 4}, {1, 1},
                         {.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kUnavailable, "memory:1"));
  EXPECT_THAT(PullFloats(*trainer, {0, 4}, {.timeout = absl::Milliseconds(30)}),
              StatusIs(absl::StatusCode::kUnavailable, "memory:1"));
  // The same call again, and it counts once.
  servers_.SetDown(1, false);
  EXPECT_EQ(PushFloats(*trainer, 1, {0, 4}, {1, 1})->part, 0);
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_EQ(*PullFloats(*trainer, {0, 4}, {.min_event = 1}),
            (std::vector<float>{-1, -1, -1, -1}));
}

TEST_F(FaultTest, AParkedPullNeverHoldsUpAPush) {
  MakeTable(Spec());
  const auto trainer = Join();
  const std::vector<int64_t> row_ids = {0, 4, 8};
  std::vector<float> out(12);
  const auto bytes = std::as_writable_bytes(std::span(out));
  PendingPull first =
      trainer->PullAsync(row_ids, bytes.subspan(0, 24), {.min_event = 1});
  PendingPull second =
      trainer->PullAsync(row_ids, bytes.subspan(24, 24), {.min_event = 1});
  ASSERT_THAT(PushFloats(*trainer, 1, row_ids, {1, 1, 1}), IsOk());
  ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
}

}  // namespace
}  // namespace rowhouse::client
