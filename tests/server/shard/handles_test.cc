#include "server/shard/handles.h"

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::testing::ElementsAre;

constexpr auto kPrecondition = absl::StatusCode::kFailedPrecondition;

SharedSlots Slots(std::vector<int64_t> slots) {
  return std::make_shared<const std::vector<int64_t>>(std::move(slots));
}

TEST(HandlesTest, FindsTheRowsOfAHandle) {
  Handles handles(10);
  const int64_t handle = handles.Add(0, Slots({5, 3, 5}));
  EXPECT_GT(handle, 0);
  EXPECT_THAT(**handles.Find(0, handle), ElementsAre(5, 3, 5));
}

TEST(HandlesTest, AHandleIsItsRanksOnly) {
  Handles handles(10);
  const int64_t handle = handles.Add(0, Slots({5}));
  EXPECT_THAT(handles.Find(1, handle), Fails(kPrecondition, "HANDLE_GONE"));
  EXPECT_THAT(handles.Find(0, handle + 1), Fails(kPrecondition, "HANDLE_GONE"));
}

TEST(HandlesTest, TheOldestGoWhenRowsPassTheLimit) {
  Handles handles(4);
  const int64_t a = handles.Add(0, Slots({1, 2}));
  const int64_t b = handles.Add(0, Slots({3}));
  const int64_t other = handles.Add(1, Slots({7, 8, 9, 10}));
  const int64_t c = handles.Add(0, Slots({4, 5}));
  EXPECT_THAT(handles.Find(0, a), Fails(kPrecondition, "HANDLE_GONE"));
  EXPECT_THAT(handles.Find(0, b), IsOk());
  EXPECT_THAT(handles.Find(0, c), IsOk());
  EXPECT_THAT(handles.Find(1, other), IsOk());
}

TEST(HandlesTest, RowsThatDoNotFitAloneGetNoHandle) {
  Handles handles(2);
  const int64_t kept = handles.Add(0, Slots({1, 2}));
  EXPECT_EQ(handles.Add(0, Slots({1, 2, 3})), 0);
  EXPECT_THAT(handles.Find(0, kept), IsOk());
}

TEST(HandlesTest, NoRowsAreAHandleToo) {
  Handles handles(0);
  const int64_t handle = handles.Add(0, Slots({}));
  EXPECT_GT(handle, 0);
  EXPECT_THAT(handles.Find(0, handle), IsOk());
}

TEST(HandlesTest, HandlesOfNoRowsAreBoundedToo) {
  Handles handles(0);
  const int64_t first = handles.Add(0, Slots({}));
  int64_t last = first;
  for (int i = 0; i < 4096; ++i) last = handles.Add(0, Slots({}));
  EXPECT_THAT(handles.Find(0, first), Fails(kPrecondition, "HANDLE_GONE"));
  EXPECT_THAT(handles.Find(0, last), IsOk());
}

TEST(HandlesTest, ClearExpiresAll) {
  Handles handles(10);
  const int64_t handle = handles.Add(0, Slots({1}));
  handles.Clear();
  EXPECT_THAT(handles.Find(0, handle), Fails(kPrecondition, "HANDLE_GONE"));
  EXPECT_NE(handles.Add(0, Slots({1})), handle);
}

TEST(HandlesTest, ARestartedServerGivesOtherNumbers) {
  std::set<int64_t> seen;
  for (int life = 0; life < 20; ++life) {
    Handles handles(10);
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(seen.insert(handles.Add(0, Slots({1}))).second);
    }
  }
}

}  // namespace
}  // namespace rowhouse::server
