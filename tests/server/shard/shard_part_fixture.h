#ifndef ROWHOUSE_TESTS_SERVER_SHARD_SHARD_PART_FIXTURE_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_SHARD_PART_FIXTURE_H_

#include <cstdint>

#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {

/// What tests of parts do over and over.
class PartTest : public ShardTest {
 protected:
  // Pushes one part of each rank, seals, and applies `event`.
  void ApplyEventWithParts(int64_t event) {
    ASSERT_THAT(shard_->Push(OneRow(kRank0, event, 0, 3)), IsOk());
    ASSERT_THAT(shard_->Push(OneRow(kRank1, event, 0, 4)), IsOk());
    ASSERT_THAT(shard_->Seal(kRank0, event, 1), IsOk());
    ASSERT_THAT(shard_->Seal(kRank1, event, 1), IsOk());
    ASSERT_THAT(shard_->Commit(kRank0, event, Commit()), IsOk());
  }

  int64_t StagedRows(int64_t event, int32_t rank) {
    const auto state = shard_->GetEventState();
    for (const auto& open : state->open_events) {
      if (open.event != event) continue;
      for (const auto& contribution : open.contributions) {
        if (contribution.trainer_rank == rank) return contribution.row_count;
      }
    }
    return 0;
  }

  // Two rows by handle: a pull of rows 6 and 2, then their gradients.
  PartToPush ByHandle(int64_t event) {
    server::PullRequest request;
    request.trainer = kRank0;
    request.return_handle = true;
    const auto pulled = shard_->Pull({6, 2}, request);
    PartToPush part;
    part.trainer = kRank0;
    part.event = event;
    part.handles = {pulled->handle};
    part.rows = Floats({1, 0, 0, 1});
    return part;
  }
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_SHARD_PART_FIXTURE_H_
