#include "server/shard/landings.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "server/shard/shard_errors.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::StatusIs;

constexpr auto kAborted = absl::StatusCode::kAborted;

TEST(LandingsTest, CountsTheRowsOfARankAndEvent) {
  Landings landings;
  const Landings::Ticket first = landings.Begin({1, 0, 0}, 5);
  const Landings::Ticket second = landings.Begin({1, 0, 9}, 7);
  const Landings::Ticket other_rank = landings.Begin({1, 1, 0}, 100);
  const Landings::Ticket other_event = landings.Begin({2, 0, 0}, 100);
  EXPECT_EQ(landings.RowCount(1, 0, 3), 12);
  EXPECT_EQ(landings.RowCount(1, 0, 9), 5);
  landings.End(*first);
  EXPECT_EQ(landings.RowCount(1, 0, 3), 7);
}

TEST(LandingsTest, TheNewerOfANameSupersedesTheOlder) {
  Landings landings;
  const Landings::Ticket older = landings.Begin({1, 0, 0}, 5);
  const Landings::Ticket newer = landings.Begin({1, 0, 0}, 6);
  EXPECT_THAT(older->Check(), Fails(kAborted, "SUPERSEDED"));
  EXPECT_THAT(newer->Check(), IsOk());
  // The older one's end leaves the newer in place.
  landings.End(*older);
  EXPECT_EQ(landings.RowCount(1, 0, 3), 6);
}

TEST(LandingsTest, ADiscardRevokesOneRanksLandingsOfAnEvent) {
  Landings landings;
  const Landings::Ticket revoked = landings.Begin({1, 0, 65535}, 5);
  const Landings::Ticket repeat = *landings.BeginRepeat({1, 0, 1});
  const Landings::Ticket other_rank = landings.Begin({1, 1, 0}, 5);
  const Landings::Ticket other_event = landings.Begin({2, 0, 0}, 5);
  landings.Discard(1, 0);
  EXPECT_THAT(revoked->Check(), Fails(kAborted, "SUPERSEDED"));
  EXPECT_THAT(repeat->Check(), Fails(kAborted, "SUPERSEDED"));
  EXPECT_THAT(other_rank->Check(), IsOk());
  EXPECT_THAT(other_event->Check(), IsOk());
  EXPECT_EQ(landings.RowCount(1, 0, 0), 0);
}

TEST(LandingsTest, ASealRevokesNewPartsOnly) {
  Landings landings;
  const Landings::Ticket revoked = landings.Begin({1, 0, 3}, 5);
  const Landings::Ticket repeat = *landings.BeginRepeat({1, 0, 0});
  landings.Seal(1, 0, absl::FailedPreconditionError("sealed"));
  EXPECT_THAT(revoked->Check(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "sealed"));
  EXPECT_THAT(repeat->Check(), IsOk());
}

TEST(LandingsTest, AFenceRevokesARanksLandingsOfAllEvents) {
  Landings landings;
  const Landings::Ticket a = landings.Begin({1, 0, 0}, 5);
  const Landings::Ticket b = landings.Begin({2, 0, 0}, 5);
  const Landings::Ticket repeat = *landings.BeginRepeat({1, 0, 1});
  const Landings::Ticket other = landings.Begin({1, 1, 0}, 5);
  landings.Fence(0);
  EXPECT_THAT(a->Check(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(b->Check(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(repeat->Check(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(other->Check(), IsOk());
  landings.FenceAll();
  EXPECT_THAT(other->Check(), Fails(kAborted, "FENCED"));
}

TEST(LandingsTest, RepeatsOfOneNameLandSideBySide) {
  Landings landings;
  const Landings::Ticket a = *landings.BeginRepeat({1, 0, 0});
  const Landings::Ticket b = *landings.BeginRepeat({1, 0, 0});
  EXPECT_EQ(landings.RowCount(1, 0, 3), 0);
  landings.End(*a);
  landings.Fence(0);
  EXPECT_THAT(a->Check(), IsOk());
  EXPECT_THAT(b->Check(), Fails(kAborted, "FENCED"));
}

TEST(LandingsTest, ARankHasSoManyRepeatsUnderWayAndOthersTheirs) {
  Landings landings;
  std::vector<Landings::Ticket> open;
  for (int i = 0; i < Landings::kMostRepeats; ++i) {
    const auto repeat = landings.BeginRepeat({1 + i % 2, 0, i});
    ASSERT_THAT(repeat, IsOk());
    open.push_back(*repeat);
  }
  const auto refused = landings.BeginRepeat({1, 0, 0});
  EXPECT_THAT(refused,
              Fails(absl::StatusCode::kResourceExhausted, "REPEATS_OPEN"));
  EXPECT_EQ(wire::DetailsOf(refused.status())->retry_delay, kRetryDelay);
  EXPECT_EQ(landings.count(), Landings::kMostRepeats);
  EXPECT_THAT(landings.BeginRepeat({1, 1, 0}), IsOk());
  EXPECT_THAT(landings.Begin({1, 0, 99}, 5)->Check(), IsOk());
  // Each that ends, or is revoked, gives its place to another.
  landings.End(*open[3]);
  EXPECT_THAT(landings.BeginRepeat({1, 0, 0}), IsOk());
  EXPECT_THAT(landings.BeginRepeat({1, 0, 0}),
              Fails(absl::StatusCode::kResourceExhausted, "REPEATS_OPEN"));
  landings.Discard(2, 0);
  EXPECT_THAT(landings.BeginRepeat({1, 0, 0}), IsOk());
}

TEST(LandingsTest, TheReceiverIsToldOnceAndMayDropItsTicket) {
  Landings landings;
  Landings::Ticket ticket = landings.Begin({1, 0, 0}, 5);
  std::vector<absl::Status> told;
  ticket->set_on_revoked([&](absl::Status reason) {
    told.push_back(std::move(reason));
    ticket = nullptr;
  });
  landings.Begin({1, 0, 0}, 5);
  landings.RevokeAll(absl::UnavailableError("ending"));
  ASSERT_EQ(told.size(), 1);
  EXPECT_THAT(told[0], Fails(kAborted, "SUPERSEDED"));
}

}  // namespace
}  // namespace rowhouse::server
