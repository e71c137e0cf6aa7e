#include "server/shard/lane.h"

#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/server/shard/pending.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Detail;
using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::Pending;

constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;

// A lane whose thread waits in a task until it is let go.
class HeldLane {
 public:
  explicit HeldLane(int32_t capacity) : lane_(capacity) {
    Pending<bool> started;
    lane_.PostInternal([this, callback = started.Callback()]() mutable {
      callback(true);
      released_.Wait();
    });
    started.Wait();
  }

  Lane& lane() { return lane_; }
  void Release() { release_(true); }

 private:
  Pending<bool> released_;
  absl::AnyInvocable<void(bool)> release_ = released_.Callback();
  Lane lane_;
};

TEST(LaneTest, RunsTasksInTheOrderOfTheirPosts) {
  std::vector<int> order;
  {
    Lane lane(100);
    for (int i = 0; i < 50; ++i) {
      lane.Post([&order, i](absl::Status admitted) {
        EXPECT_THAT(admitted, IsOk());
        order.push_back(2 * i);
      });
      lane.PostInternal([&order, i] { order.push_back(2 * i + 1); });
    }
  }
  for (int i = 0; i < 100; ++i) ASSERT_EQ(order[i], i);
}

TEST(LaneTest, RefusesAtOnceWhatPassesItsCapacity) {
  HeldLane held(2);
  Pending<absl::Status> first;
  Pending<absl::Status> second;
  Pending<absl::Status> third;
  held.lane().Post(first.Callback());
  held.lane().Post(second.Callback());
  held.lane().Post(third.Callback());
  ASSERT_TRUE(third.IsDone());
  const absl::Status refused = third.Wait();
  EXPECT_THAT(refused, Fails(kExhausted, "LANE_FULL"));
  EXPECT_EQ(Detail(refused, "limit"), "lane_capacity");
  EXPECT_EQ(Detail(refused, "value"), "2");
  EXPECT_GT(*wire::DetailsOf(refused)->retry_delay, absl::ZeroDuration());
  held.Release();
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
}

TEST(LaneTest, WorkOfAdmittedCallsIsNeverRefused) {
  HeldLane held(0);
  Pending<bool> ran;
  held.lane().PostInternal(
      [callback = ran.Callback()]() mutable { callback(true); });
  held.Release();
  EXPECT_TRUE(ran.Wait());
}

TEST(LaneTest, StopRunsWhatWasPosted) {
  Lane lane(10);
  bool ran = false;
  lane.Post([&](const absl::Status&) { ran = true; });
  lane.Stop();
  EXPECT_TRUE(ran);
}

TEST(LaneTest, AStoppedLaneRefuses) {
  Lane lane(10);
  lane.Stop();
  Pending<absl::Status> late;
  lane.Post(late.Callback());
  lane.PostInternal([] { ADD_FAILURE() << "ran after the end"; });
  EXPECT_TRUE(absl::IsUnavailable(late.Wait()));
}

TEST(LaneTest, TasksMayPost) {
  Lane lane(10);
  Pending<absl::Status> inner;
  lane.Post([&lane, callback = inner.Callback()](absl::Status) mutable {
    lane.Post(std::move(callback));
  });
  EXPECT_THAT(inner.Wait(), IsOk());
}

TEST(LaneTest, ManyThreadsShareOneLane) {
  int64_t sum = 0;  // Only the lane's thread touches it.
  {
    Lane lane(1 << 20);
    std::vector<std::thread> posters;
    for (int thread = 0; thread < 8; ++thread) {
      posters.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          lane.Post([&sum](const absl::Status&) { ++sum; });
        }
      });
    }
    for (std::thread& poster : posters) poster.join();
  }
  EXPECT_EQ(sum, 8000);
}

}  // namespace
}  // namespace rowhouse::server
