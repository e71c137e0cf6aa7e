#include "server/shard/timer_queue.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Pending;
using ::testing::ElementsAre;

TEST(TimerQueueTest, CallsBackAtOrAfterTheTime) {
  const std::unique_ptr<TimerQueue> timers = MakeSystemTimerQueue();
  const absl::Time wanted = timers->Now() + absl::Milliseconds(20);
  Pending<absl::Time> called;
  timers->CallAt(wanted, [&timers, callback = called.Callback()]() mutable {
    callback(timers->Now());
  });
  EXPECT_GE(called.Wait(), wanted);
}

TEST(TimerQueueTest, CallsBackInTheOrderOfTimes) {
  const std::unique_ptr<TimerQueue> timers = MakeSystemTimerQueue();
  const absl::Time start = timers->Now();
  std::vector<int> order;  // Touched by the queue's one thread.
  Pending<bool> last;
  timers->CallAt(start + absl::Milliseconds(30),
                 [&order, callback = last.Callback()]() mutable {
                   order.push_back(3);
                   callback(true);
                 });
  timers->CallAt(start + absl::Milliseconds(10), [&] { order.push_back(1); });
  timers->CallAt(start + absl::Milliseconds(20), [&] { order.push_back(2); });
  last.Wait();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(TimerQueueTest, ATimeThatHasPassedIsDueAtOnce) {
  const std::unique_ptr<TimerQueue> timers = MakeSystemTimerQueue();
  Pending<bool> called;
  timers->CallAt(absl::InfinitePast(),
                 [callback = called.Callback()]() mutable { callback(true); });
  EXPECT_TRUE(called.Wait());
}

TEST(TimerQueueTest, AnEarlierTimeComesBeforeOneThatIsWaitedFor) {
  const std::unique_ptr<TimerQueue> timers = MakeSystemTimerQueue();
  timers->CallAt(absl::InfiniteFuture(), [] { ADD_FAILURE(); });
  timers->CallAt(timers->Now() + absl::Hours(10), [] { ADD_FAILURE(); });
  Pending<bool> called;
  timers->CallAt(timers->Now() + absl::Milliseconds(1),
                 [callback = called.Callback()]() mutable { callback(true); });
  EXPECT_TRUE(called.Wait());
}

TEST(TimerQueueTest, TheEndDropsWhatIsNotDue) {
  const auto kept = std::make_shared<int>(0);
  {
    const std::unique_ptr<TimerQueue> timers = MakeSystemTimerQueue();
    timers->CallAt(timers->Now() + absl::Hours(1), [kept] { ++*kept; });
  }
  EXPECT_EQ(*kept, 0);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(TimerQueueTest, CallbacksMaySetTimers) {
  const std::unique_ptr<TimerQueue> timers = MakeSystemTimerQueue();
  Pending<bool> called;
  timers->CallAt(timers->Now(), [&timers,
                                 callback = called.Callback()]() mutable {
    timers->CallAt(timers->Now(), [callback = std::move(callback)]() mutable {
      callback(true);
    });
  });
  EXPECT_TRUE(called.Wait());
}

}  // namespace
}  // namespace rowhouse::server
