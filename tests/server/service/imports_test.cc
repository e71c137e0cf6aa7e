// Which imports of a table may be under way.

#include "server/imports.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {
namespace {

constexpr auto kAborted = absl::StatusCode::kAborted;
constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
constexpr absl::Duration kPatience = absl::Seconds(30);

class ImportsTest : public ::testing::Test {
 protected:
  static absl::Time At(int64_t seconds) {
    return absl::UnixEpoch() + absl::Seconds(seconds);
  }

  // Begins an import; `ended` gets what it is interrupted with.
  absl::StatusOr<int64_t> Begin(int64_t seconds, absl::Status& ended) {
    return imports_.Begin(
        "tables/t", At(seconds), kPatience,
        [&ended](absl::Status reason) { ended = std::move(reason); });
  }

  server::Imports imports_;
  absl::Status first_;
  absl::Status second_;
  absl::Status third_;
};

TEST_F(ImportsTest, AThirdIsRefusedUntilOneEnds) {
  const auto first = Begin(0, first_);
  const auto second = Begin(0, second_);
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  const auto refused = Begin(29, third_);
  EXPECT_THAT(refused, Fails(kExhausted, "IMPORTS_OPEN"));
  EXPECT_TRUE(wire::DetailsOf(refused.status())->retry_delay.has_value());
  imports_.End(*first);
  EXPECT_THAT(Begin(29, third_), IsOk());
  EXPECT_EQ(imports_.count(), 2);
}

TEST_F(ImportsTest, TheOneThatHasBeenSilentLongestGivesWay) {
  const auto first = Begin(0, first_);
  const auto second = Begin(1, second_);
  imports_.Heard(*first, At(5));
  EXPECT_THAT(Begin(30, third_), Fails(kExhausted, "IMPORTS_OPEN"));
  EXPECT_THAT(Begin(31, third_), IsOk());
  EXPECT_THAT(first_, IsOk());
  EXPECT_THAT(second_, Fails(kAborted, "SUPERSEDED"));
  // Its end takes no place from others.
  imports_.End(*second);
  EXPECT_EQ(imports_.count(), 2);
}

TEST_F(ImportsTest, OneWhoseRowsHaveAllComeKeepsItsPlace) {
  for (absl::Status* const ended : {&first_, &second_}) {
    const auto import = Begin(0, *ended);
    ASSERT_THAT(import, IsOk());
    imports_.Heard(*import, absl::InfiniteFuture());
  }
  EXPECT_THAT(Begin(1000, third_), Fails(kExhausted, "IMPORTS_OPEN"));
}

TEST_F(ImportsTest, OfADeletedTableAllEndAndNoneBegins) {
  ASSERT_THAT(Begin(0, first_), IsOk());
  imports_.InterruptAll(absl::NotFoundError("deleted"));
  EXPECT_THAT(first_, StatusIs(absl::StatusCode::kNotFound, "deleted"));
  EXPECT_EQ(imports_.count(), 0);
  EXPECT_THAT(Begin(0, second_),
              StatusIs(absl::StatusCode::kNotFound, "deleted"));
}

}  // namespace
}  // namespace rowhouse::testing
