#include "client/internal/worker_pool.h"

#include <atomic>
#include <cstdint>

#include "gtest/gtest.h"
#include "kernels/mutex.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::internal {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

// Opens once; waits until then.
class Gate {
 public:
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.SignalAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!open_) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(WorkerPoolTest, ABlockedTaskNeverHoldsUpAnother) {
  constexpr int kBlocked = 8;
  Gate gate;
  Gate ran;
  WorkerPool pool;
  for (int i = 0; i < kBlocked; ++i) pool.Schedule([&] { gate.Wait(); });
  pool.Schedule([&] { ran.Open(); });
  ran.Wait();
  EXPECT_GE(pool.thread_count(), kBlocked + 1);
  gate.Open();
}

TEST(WorkerPoolTest, FanOutRunsEveryBodyAtOnce) {
  constexpr int32_t kCount = 5;
  Gate all;
  std::atomic<int32_t> begun = 0;
  WorkerPool pool;
  EXPECT_THAT(pool.FanOut(kCount,
                          [&](int32_t) {
                            if (++begun == kCount) all.Open();
                            all.Wait();
                            return absl::OkStatus();
                          }),
              IsOk());
}

TEST(WorkerPoolTest, FanOutGivesTheFaultOfTheLowestIndex) {
  WorkerPool pool;
  EXPECT_THAT(pool.FanOut(4,
                          [](int32_t i) {
                            return i == 0
                                       ? absl::OkStatus()
                                       : absl::InternalError(std::to_string(i));
                          }),
              StatusIs(absl::StatusCode::kInternal, "1"));
}

TEST(WorkerPoolTest, FanOutOfNothingIsOk) {
  WorkerPool pool;
  EXPECT_THAT(pool.FanOut(0, [](int32_t) { return absl::InternalError("?"); }),
              IsOk());
}

TEST(WorkerPoolTest, ScheduledTasksRunBeforeThePoolIsGone) {
  std::atomic<int> count = 0;
  {
    WorkerPool pool;
    for (int i = 0; i < 20; ++i) pool.Schedule([&] { ++count; });
  }
  EXPECT_EQ(count, 20);
}

}  // namespace
}  // namespace rowhouse::client::internal
