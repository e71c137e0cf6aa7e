#include "server/shard/event_commit.h"

#include <limits>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Detail;
using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr kernels::RowAdamScalars kGood{0.1, 0.01, 0.99, 1e-8, 0.5};

EventCommit With(const kernels::RowAdamScalars& scalars, bool skip = false) {
  return {{1, 2}, skip, scalars};
}

TEST(EventCommitTest, DoublesAreComparedByBits) {
  kernels::RowAdamScalars zero = kGood;
  zero.eps = 0.0;
  kernels::RowAdamScalars negative_zero = kGood;
  negative_zero.eps = -0.0;
  kernels::RowAdamScalars nan = kGood;
  nan.decay = kNan;
  EXPECT_TRUE(SameCommit(With(kGood), With(kGood)));
  EXPECT_FALSE(SameCommit(With(zero), With(negative_zero)));
  EXPECT_TRUE(SameCommit(With(nan), With(nan)));
}

TEST(EventCommitTest, SessionsAndSkipTellCommitsApart) {
  EventCommit other = With(kGood);
  other.sessions = {1, 3};
  EXPECT_FALSE(SameCommit(With(kGood), other));
  EXPECT_FALSE(SameCommit(With(kGood), With(kGood, true)));
}

TEST(EventCommitTest, ScalarsOfASkippedEventSayNothing) {
  EXPECT_TRUE(SameCommit(With(kGood, true), With({}, true)));
}

// Checks that `scalars` are refused for `field`.
void ExpectBad(const kernels::RowAdamScalars& scalars, const char* field) {
  const absl::Status status = CheckScalars(scalars, 1);
  EXPECT_THAT(status, Fails(kInvalid, "BAD_SCALAR"));
  EXPECT_EQ(Detail(status, "field"), field);
  EXPECT_THAT(status, StatusIs(kInvalid, field));
}

TEST(EventCommitTest, ScalarsMustBeFiniteInFp32) {
  EXPECT_THAT(CheckScalars(kGood, 1), IsOk());
  for (const double bad : {kNan, kInfinity, -kInfinity, 1e39, -1e39}) {
    kernels::RowAdamScalars scalars = kGood;
    scalars.step_size = bad;
    ExpectBad(scalars, "step_size");
    scalars = kGood;
    scalars.decay = bad;
    ExpectBad(scalars, "decay");
    scalars = kGood;
    scalars.eps = bad;
    ExpectBad(scalars, "eps");
    scalars = kGood;
    scalars.gradient_scale = bad;
    ExpectBad(scalars, "gradient_scale");
  }
}

TEST(EventCommitTest, Beta2LiesInItsRange) {
  for (const double bad : {kNan, -0.1, 1.0, 2.0, kInfinity}) {
    kernels::RowAdamScalars scalars = kGood;
    scalars.beta2 = bad;
    ExpectBad(scalars, "beta2");
  }
  kernels::RowAdamScalars zero = kGood;
  zero.beta2 = 0.0;
  EXPECT_THAT(CheckScalars(zero, 1), IsOk());
}

TEST(EventCommitTest, EpsIsNotNegative) {
  kernels::RowAdamScalars scalars = kGood;
  scalars.eps = -1e-9;
  ExpectBad(scalars, "eps");
}

TEST(EventCommitTest, TheSquareOfTheScaleMustBeFiniteToo) {
  kernels::RowAdamScalars scalars = kGood;
  scalars.beta2 = 0.0;
  scalars.gradient_scale = 1e20;
  ExpectBad(scalars, "gradient_scale");
  EXPECT_THAT(CheckScalars(scalars, 4096), IsOk());
}

}  // namespace
}  // namespace rowhouse::server
