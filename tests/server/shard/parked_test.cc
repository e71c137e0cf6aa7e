#include "server/shard/parked.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::testing::ElementsAre;

ParkedCall Waiting(int64_t event, int64_t until_seconds) {
  ParkedCall call;
  call.applied_event = event;
  call.until = absl::UnixEpoch() + absl::Seconds(until_seconds);
  return call;
}

std::vector<int64_t> TakeThrough(Parked& parked, int64_t event) {
  std::vector<int64_t> events;
  for (auto& [call, status] : parked.TakeEnded(
           [&](const ParkedCall& call) -> std::optional<absl::Status> {
             if (call.applied_event > event) return std::nullopt;
             return absl::OkStatus();
           })) {
    events.push_back(call.applied_event);
  }
  return events;
}

TEST(ParkedTest, TakesCallsInTheOrderTheyCame) {
  Parked parked(10);
  for (const int64_t event : {3, 1, 2, 1}) parked.Park(Waiting(event, 1));
  EXPECT_THAT(TakeThrough(parked, 2), ElementsAre(1, 2, 1));
  EXPECT_THAT(TakeThrough(parked, 3), ElementsAre(3));
}

TEST(ParkedTest, HasRoomForItsLimit) {
  Parked parked(1);
  EXPECT_THAT(parked.CheckRoom(), IsOk());
  parked.Park(Waiting(1, 1));
  EXPECT_THAT(parked.CheckRoom(),
              Fails(absl::StatusCode::kResourceExhausted, "PARKED_READS_FULL"));
  TakeThrough(parked, 1);
  EXPECT_THAT(parked.CheckRoom(), IsOk());
}

TEST(ParkedTest, TellsWhenTheFirstGivesUp) {
  Parked parked(10);
  EXPECT_EQ(parked.FirstUntil(), absl::InfiniteFuture());
  parked.Park(Waiting(1, 20));
  parked.Park(Waiting(2, 10));
  EXPECT_EQ(parked.FirstUntil(), absl::UnixEpoch() + absl::Seconds(10));
}

}  // namespace
}  // namespace rowhouse::server
