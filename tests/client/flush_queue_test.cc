#include "client/internal/flush_queue.h"

#include "gmock/gmock.h"

namespace rowhouse::client::internal {
namespace {

TEST(FlushQueueTest, GivesTheOldestFirstAndPutsItBack) {
  FlushQueue queue;
  EXPECT_FALSE(queue.Pop().has_value());
  queue.Push({.event = 1, .part = 2});
  queue.Push({.event = 2, .part = 0});
  const auto oldest = queue.Pop();
  ASSERT_TRUE(oldest.has_value());
  EXPECT_EQ(oldest->event, 1);
  EXPECT_EQ(oldest->part, 2);
  queue.PutBack(*oldest);
  EXPECT_EQ(queue.Pop()->event, 1);
  EXPECT_EQ(queue.Pop()->event, 2);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(FlushQueueTest, CountsTheOnesOfPastEvents) {
  FlushQueue queue;
  for (int64_t event = 1; event <= 5; ++event) {
    queue.Push({.event = event, .part = 0});
  }
  // A part of event 5 was accepted, so event 3 is applied.
  for (int past = 0; past < 3; ++past) EXPECT_TRUE(queue.Pop()->applied);
  EXPECT_EQ(queue.Pop()->event, 4);
  EXPECT_EQ(queue.Pop()->event, 5);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(FlushQueueTest, ForgetsADiscardedEvent) {
  FlushQueue queue;
  queue.Push({.event = 1, .part = 0});
  queue.Push({.event = 2, .part = 0});
  queue.Push({.event = 1, .part = 1});
  queue.Discard(1);
  EXPECT_EQ(queue.Pop()->event, 2);
  EXPECT_FALSE(queue.Pop().has_value());
}

}  // namespace
}  // namespace rowhouse::client::internal
