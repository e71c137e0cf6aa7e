#include "server/in_flight.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::server {
namespace {

using ::testing::ElementsAre;

// Requests of size 1 against limits of 4 in all and 2 a client; what was given,
// in order.
class InFlightTest : public ::testing::Test {
 protected:
  // `name` is the client's, and a digit.
  void Ask(const std::string& name, int64_t size_bytes = 1) {
    const auto [owner, made] = rooms_.emplace(name, std::nullopt);
    ASSERT_TRUE(made);
    in_flight_->Take(name.substr(0, 1), size_bytes, &owner->second,
                     [this, name](InFlight::Room room) {
                       given_.push_back(name);
                       rooms_[name] = std::move(room);
                     });
  }
  bool Withdraw(const std::string& name) {
    return in_flight_->Withdraw(&rooms_[name]);
  }
  void GiveBack(const std::string& name) { rooms_[name].reset(); }

  std::optional<InFlight> in_flight_{
      InFlight::Limits{.total_bytes = 4, .client_bytes = 2}};
  std::map<std::string, std::optional<InFlight::Room>> rooms_;
  std::vector<std::string> given_;
};

TEST_F(InFlightTest, AClientWaitsForItsOwnRoomAndHoldsUpNoOther) {
  for (const char* name : {"a1", "a2", "a3", "b1"}) Ask(name);
  EXPECT_THAT(given_, ElementsAre("a1", "a2", "b1"));
  EXPECT_EQ(in_flight_->used_bytes(), 3);
  EXPECT_EQ(in_flight_->waiting_count(), 1);
  GiveBack("b1");
  EXPECT_EQ(in_flight_->waiting_count(), 1);
  GiveBack("a1");
  EXPECT_THAT(given_, ElementsAre("a1", "a2", "b1", "a3"));
}

TEST_F(InFlightTest, WhenAllIsInFlightTheLongestWaitingGoesFirst) {
  for (const char* name : {"a1", "a2", "b1", "b2", "c1", "d1"}) Ask(name);
  EXPECT_THAT(given_, ElementsAre("a1", "a2", "b1", "b2"));
  GiveBack("b2");
  GiveBack("a2");
  EXPECT_THAT(given_, ElementsAre("a1", "a2", "b1", "b2", "c1", "d1"));
  EXPECT_EQ(in_flight_->used_bytes(), 4);
}

TEST_F(InFlightTest, WhoWithdrawsIsGivenNothing) {
  for (const char* name : {"a1", "a2", "a3", "a4"}) Ask(name);
  EXPECT_TRUE(Withdraw("a3"));
  EXPECT_FALSE(Withdraw("a3"));
  EXPECT_FALSE(Withdraw("a1"));  // Too late.
  GiveBack("a1");
  EXPECT_THAT(given_, ElementsAre("a1", "a2", "a4"));
}

TEST_F(InFlightTest, WhatIsAboveALimitGoesAlone) {
  Ask("a1", 100);
  Ask("b1", 100);
  EXPECT_THAT(given_, ElementsAre("a1"));
  GiveBack("a1");
  EXPECT_THAT(given_, ElementsAre("a1", "b1"));
}

TEST_F(InFlightTest, AllRoomComesBack) {
  for (const char* name : {"a1", "a2", "b1"}) Ask(name);
  for (const char* name : {"a1", "a2", "b1"}) GiveBack(name);
  EXPECT_EQ(in_flight_->used_bytes(), 0);
}

TEST_F(InFlightTest, RoomMayOutliveIt) {
  Ask("a1");
  in_flight_.reset();
  GiveBack("a1");
}

}  // namespace
}  // namespace rowhouse::server
