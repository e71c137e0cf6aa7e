// Snapshots of random tables, taken piece by piece between random events.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/snapshot_fixture.h"
#include "tests/testing/random.h"

namespace rowhouse::testing {
namespace {

using server::Snapshot;
using server::SnapshotPiece;

class SnapshotPropertyTest : public ShardTest {
 protected:
  void MakeSpec(Random& random) {
    const int64_t rows = random.Integer(1, 40);
    spec_.placement = wire::Placement::Even(rows, 1);
    spec_.dim = random.Integer(1, 9);
    spec_.row_dtype =
        random.Chance(0.5) ? kernels::DType::kFp32 : kernels::DType::kBf16;
    spec_.trainer_count = 1;
    spec_.dense.reset();
    if (random.Chance(0.4)) {
      spec_.dense = server::DenseSpec{.has_master = random.Chance(0.5),
                                      .has_bias = random.Chance(0.5)};
    }
    spec_.initializer = {kernels::Initializer::Kind::kUniform, random.Bits(),
                         0.5F};
  }

  // Pushes and seals event `next_event_`, and starts its commit.
  PendingCall<bool> StartEvent(Random& random) {
    PartToPush part;
    part.trainer = kRank0;
    part.event = next_event_;
    const int64_t rows = spec_.placement.end_row(0);
    for (int64_t i = random.Integer(0, 12); i > 0; --i) {
      part.row_ids.push_back(random.Integer(0, rows - 1));
      for (int64_t d = 0; d < spec_.dim; ++d) {
        part.rows += Floats({random.Normal()});
      }
    }
    EXPECT_THAT(shard_->Push(part), IsOk());
    EXPECT_THAT(shard_->Seal(kRank0, next_event_, 1), IsOk());
    server::EventCommit commit;
    commit.sessions = {1};
    commit.skip = random.Chance(0.1);
    if (spec_.dense.has_value()) {
      commit.adamw = kernels::AdamWScalars{
          .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6};
    } else {
      commit.scalars = {0.1, 0.01, 0.9, 1e-6, 1.0};
    }
    PendingCall<bool> committed;
    owned_->Commit(kRank0, next_event_, commit, BlockingShard::NewCall(),
                   committed.Callback());
    ++next_event_;
    return committed;
  }

  uint64_t DigestOf(BlockingShard& shard) {
    const auto digest = shard.Digest();
    EXPECT_THAT(digest, IsOk());
    return digest->row_sum + digest->history_sum;
  }

  // Takes pieces, keeps some of them for a while, lets events go on.
  void TakeBetweenEvents(Random& random, Snapshot& snapshot,
                         SnapshotCopy& copy) {
    std::vector<std::unique_ptr<SnapshotPiece>> held;
    std::optional<PendingCall<bool>> committed;
    while (true) {
      if (!committed.has_value() && random.Chance(0.5)) {
        committed = StartEvent(random);
        ASSERT_THAT(shard_->GetInfo(), IsOk());
      }
      if (committed.has_value() && committed->IsDone()) {
        ASSERT_THAT(committed->Wait(), IsOk());
        committed.reset();
      }
      PieceOr piece = Next(snapshot);
      ASSERT_THAT(piece, IsOk());
      if (*piece == nullptr) break;
      copy.Take(**piece);
      held.push_back(*std::move(piece));
      // With one of two chunks for blocks free the next piece never waits.
      while (held.size() > static_cast<size_t>(random.Integer(0, 1))) {
        held.erase(held.begin());
      }
    }
    held.clear();
    if (committed.has_value()) {
      ASSERT_THAT(committed->Wait(), IsOk());
    }
  }

  int64_t next_event_ = 1;
};

TEST_F(SnapshotPropertyTest, AnySnapshotIsTheTableAsOfItsEvent) {
  const char* const cases = std::getenv("ROWHOUSE_TEST_CASES");
  const int count = cases == nullptr ? 60 : std::atoi(cases);
  Random random(20261201);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < count; ++i) {
    SCOPED_TRACE(absl::StrCat("case ", i));
    MakeSpec(random);
    StartWithSessions();
    next_event_ = 1;
    for (int64_t n = random.Integer(0, 3); n > 0; --n) {
      ASSERT_THAT(StartEvent(random).Wait(), IsOk());
    }
    const int64_t ahead = random.Integer(0, 2);
    server::SnapshotRequest request;
    request.name = "c";
    request.event = next_event_ - 1 + ahead;
    request.block_row_count = random.Integer(1, 7);
    OpenedSnapshotOr snapshot = OpenSnapshot(*owned_, request);
    ASSERT_THAT(snapshot, IsOk());
    for (int64_t n = 0; n < ahead; ++n) {
      ASSERT_THAT(StartEvent(random).Wait(), IsOk());
    }
    ASSERT_THAT(StartCut(**snapshot).Wait(), IsOk());
    const uint64_t digest = DigestOf(*shard_);
    SnapshotCopy copy(spec_, (*snapshot)->row_count());
    TakeBetweenEvents(random, **snapshot, copy);
    if (HasFatalFailure()) return;
    EXPECT_TRUE(copy.complete());

    auto other = server::Shard::Create(spec_, limits_, *backend_, timers_);
    ASSERT_THAT(other, IsOk());
    Restore(**other, (*snapshot)->state(), copy, random.Integer(1, 11));
    BlockingShard restored(**other);
    EXPECT_EQ(DigestOf(restored), digest);
    snapshot->reset();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rowhouse::testing
