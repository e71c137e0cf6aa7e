#include "kernels/cpu/recycled_memory.h"

#include <cstdint>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::kernels::cpu {
namespace {

using ::rowhouse::testing::IsOk;

constexpr int64_t kMiB = 1 << 20;

class RecycledMemoryTest : public ::testing::Test {
 protected:
  // Memory is told apart by a mark: fresh pages are 0.
  Buffer Take(int64_t size_bytes) {
    absl::StatusOr<Buffer> buffer = memory_.Allocate(size_bytes);
    EXPECT_THAT(buffer, IsOk());
    EXPECT_EQ(buffer->size_bytes(), size_bytes);
    return *std::move(buffer);
  }
  static void Mark(const Buffer& buffer) { *buffer.as<char>() = 'm'; }
  static bool IsMarked(const Buffer& buffer) {
    return *buffer.as<char>() == 'm';
  }

  RecycledMemory memory_;
};

TEST_F(RecycledMemoryTest, FreedMemoryServesWhatIsALittleSmaller) {
  Mark(Take(4 * kMiB));
  EXPECT_TRUE(IsMarked(Take(4 * kMiB)));
  EXPECT_TRUE(IsMarked(Take(4 * kMiB - 1000)));
  EXPECT_TRUE(IsMarked(Take(4 * kMiB)));  // All of it comes back.
}

TEST_F(RecycledMemoryTest, FreedMemoryServesNeitherMoreNorMuchLess) {
  Mark(Take(4 * kMiB));
  EXPECT_FALSE(IsMarked(Take(2 * kMiB)));
  EXPECT_FALSE(IsMarked(Take(4 * kMiB + 1)));
}

TEST_F(RecycledMemoryTest, NoMoreIsKeptThanWasInUseAtOnce) {
  Mark(Take(4 * kMiB));
  const Buffer other = Take(3 * kMiB);  // Another one: 4 were in use at most.
  EXPECT_FALSE(IsMarked(other));
  { const Buffer third = Take(1 * kMiB); }
  // 3 are in use, so of the first, 4, nothing may be left; but 1 is.
  Buffer again = Take(4 * kMiB);
  EXPECT_FALSE(IsMarked(again));
}

TEST_F(RecycledMemoryTest, DropKeepsNothing) {
  Mark(Take(4 * kMiB));
  memory_.Drop();
  EXPECT_FALSE(IsMarked(Take(4 * kMiB)));
}

TEST_F(RecycledMemoryTest, DropLeavesWhatIsInUse) {
  const Buffer buffer = Take(4 * kMiB);
  memory_.Drop();
  Mark(buffer);
  EXPECT_TRUE(IsMarked(buffer));
}

TEST_F(RecycledMemoryTest, NothingIsAnEmptyBuffer) {
  EXPECT_EQ(Take(0).data(), nullptr);
}

}  // namespace
}  // namespace rowhouse::kernels::cpu
