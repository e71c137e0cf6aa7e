// Many threads on one shard.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

constexpr int32_t kTrainers = 4;
constexpr int32_t kParts = 3;

class ShardRaceTest : public ShardTest {
 protected:
  ShardRaceTest() {
    spec_.trainer_count = kTrainers;
    limits_.max_anonymous_pull_count = 64;
  }

  static std::vector<int64_t> Sessions() {
    return std::vector<int64_t>(kTrainers, 1);
  }

  // Small whole numbers: any order of sums is exact.
  static PartToPush PartOf(int32_t rank, int64_t event, int32_t number) {
    PartToPush part = OneRow({rank, 1}, event, number, 0);
    part.row_ids = {number, (number + rank) % 10, 9};
    part.rows = Floats({1, 2, static_cast<float>(rank), 1, 3, 1});
    part.rows_per_message = 1 + rank % 2;
    return part;
  }

  // One trainer: each part is sent by two threads at once, then sealed.
  void Contribute(int32_t rank, int64_t event) {
    const auto push_all = [&] {
      for (int32_t number = 0; number < kParts; ++number) {
        absl::Status pushed;
        do {
          pushed = shard_->Push(PartOf(rank, event, number)).status();
        } while (wire::ReasonOf(pushed) == "SUPERSEDED");
        EXPECT_THAT(pushed, IsOk());
      }
    };
    std::thread retry(push_all);
    push_all();
    retry.join();
    EXPECT_THAT(shard_->Seal({rank, 1}, event, kParts), IsOk());
  }

  void CommitWhenSealed(int64_t event) {
    EXPECT_THAT(shard_->StartGetEventState(event, {}).Wait(), IsOk());
    server::EventCommit commit = Commit(Sessions());
    commit.scalars.beta2 = 0.5;
    EXPECT_THAT(shard_->Commit({0, 1}, event, commit), IsOk());
  }

  uint64_t DigestAfter(int64_t events, bool concurrent) {
    StartWithSessions();
    for (int64_t event = 1; event <= events; ++event) {
      if (concurrent) {
        std::vector<std::thread> trainers;
        for (int32_t rank = 0; rank < kTrainers; ++rank) {
          trainers.emplace_back([&, rank] { Contribute(rank, event); });
        }
        CommitWhenSealed(event);
        for (std::thread& trainer : trainers) trainer.join();
      } else {
        for (int32_t rank = 0; rank < kTrainers; ++rank) {
          for (int32_t number = 0; number < kParts; ++number) {
            EXPECT_THAT(shard_->Push(PartOf(rank, event, number)), IsOk());
          }
          EXPECT_THAT(shard_->Seal({rank, 1}, event, kParts), IsOk());
        }
        CommitWhenSealed(event);
      }
    }
    return shard_->Digest()->row_sum;
  }
};

TEST_F(ShardRaceTest,
       ConcurrentTrainersAndRetriesGiveTheBitsOfOneAfterAnother) {
  const uint64_t expected = DigestAfter(5, /*concurrent=*/false);
  EXPECT_EQ(DigestAfter(5, /*concurrent=*/true), expected);
}

TEST_F(ShardRaceTest, EveryPullShowsOneEventWhileEventsAreApplied) {
  constexpr int64_t kEvents = 20;
  StartWithSessions();
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        // Row 9 gets the same updates throughout: its copies must agree.
        const auto pulled = shard_->Pull({9, 9, 9, 9}, {}, 1);
        ASSERT_THAT(pulled, IsOk());
        const std::string first = pulled->rows.substr(0, 8);
        EXPECT_EQ(pulled->rows, first + first + first + first);
      }
    });
  }
  for (int64_t event = 1; event <= kEvents; ++event) {
    for (int32_t rank = 0; rank < kTrainers; ++rank) {
      PartToPush part = PartOf(rank, event, 0);
      part.seal_part_count = 1;
      ASSERT_THAT(shard_->Push(part), IsOk());
    }
    CommitWhenSealed(event);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(AppliedEvent(), kEvents);
}

TEST_F(ShardRaceTest, OfRacingSessionsTheHighestIsLeft) {
  Start();
  std::vector<std::thread> openers;
  for (int64_t session = 1; session <= 8; ++session) {
    openers.emplace_back([&, session] {
      const server::TrainerSession trainer{0, session};
      if (!shard_->OpenSession(trainer, session).ok()) return;
      // Either the part lands, or a newer session has fenced this one.
      PartToPush part = OneRow(trainer, 1, 0, 3);
      part.seal_part_count = 1;
      const absl::Status pushed = shard_->Push(part).status();
      const std::string reason = wire::ReasonOf(pushed);
      EXPECT_TRUE(pushed.ok() || reason == "FENCED" || reason == "SUPERSEDED" ||
                  reason == "CONTRIBUTION_SEALED")
          << pushed;
    });
  }
  for (std::thread& opener : openers) opener.join();
  const auto state = shard_->GetEventState();
  EXPECT_EQ(state->sessions[0].trainer.session, 8);
  ASSERT_EQ(state->open_events.size(), 1);
  EXPECT_EQ(state->open_events[0].contributions[0].part_count, 1);
}

TEST_F(ShardRaceTest, WaitsCancelsAndCloseEndEveryCallOnce) {
  StartWithSessions();
  std::vector<std::thread> callers;
  std::atomic<int> answered = 0;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < 25; ++i) {
        server::PullRequest request;
        request.min_event = 1;
        auto call = BlockingShard::NewCall();
        auto waiting = shard_->StartPull({1}, request, call);
        if (caller > 0) {
          call->cancelled = true;
          owned_->NoteCancelled();
        }
        EXPECT_FALSE(waiting.Wait().ok());
        ++answered;
      }
    });
  }
  for (int caller = 1; caller < 4; ++caller) callers[caller].join();
  owned_->Close(absl::UnavailableError("ending"));
  callers[0].join();
  EXPECT_EQ(answered, 100);
}

}  // namespace
}  // namespace rowhouse::testing
