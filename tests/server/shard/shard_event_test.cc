// What an event does to rows, and how it comes about.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;

class ShardEventTest : public ShardTest {};

TEST_F(ShardEventTest, AppliesSealedContributionsAtTheCommit) {
  StartWithSessions();
  ASSERT_THAT(shard_->Push(OneRow(kRank0, 1, 0, 3)), IsOk());
  ASSERT_THAT(shard_->Push(OneRow(kRank1, 1, 0, 4)), IsOk());
  ASSERT_THAT(shard_->Seal(kRank0, 1, 1), IsOk());
  ASSERT_THAT(shard_->Seal(kRank1, 1, 1), IsOk());
  EXPECT_THAT(Row(3), ElementsAre(0, 0));
  EXPECT_EQ(*shard_->Commit(kRank0, 1, Commit()), false);
  EXPECT_EQ(AppliedEvent(), 1);
  // v = mean square 0.5; u = 1 / sqrt(0.5).
  EXPECT_THAT(Row(3), ElementsAre(-1.41421354F, 0));
  EXPECT_THAT(Row(4), ElementsAre(-1.41421354F, 0));
  EXPECT_THAT(Row(5), ElementsAre(0, 0));
}

}  // namespace
}  // namespace rowhouse::testing
