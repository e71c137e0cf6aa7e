#include "server/shard/landings.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;

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

TEST(LandingsTest, RevokesOneRanksLandingsOfAnEvent) {
  Landings landings;
  const Landings::Ticket revoked = landings.Begin({1, 0, 65535}, 5);
  const Landings::Ticket other = landings.Begin({1, 1, 0}, 5);
  landings.Revoke(1, 0, LandingTicket::State::kFenced);
  EXPECT_THAT(revoked->Check(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(other->Check(), IsOk());
  EXPECT_EQ(landings.RowCount(1, 0, 0), 0);
}

TEST(LandingsTest, RevokesAll) {
  Landings landings;
  const Landings::Ticket a = landings.Begin({1, 0, 0}, 5);
  const Landings::Ticket b = landings.Begin({2, 1, 0}, 5);
  landings.RevokeAll(LandingTicket::State::kFenced);
  EXPECT_THAT(a->Check(), Fails(kAborted, "FENCED"));
  EXPECT_THAT(b->Check(), Fails(kAborted, "FENCED"));
}

}  // namespace
}  // namespace rowhouse::server
