#include "client/internal/row_selection.h"

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::internal {
namespace {

using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Shards own [0, 4), [4, 8) and [8, 12).
const wire::Placement kPlacement = wire::Placement::Even(12, 3);

const std::byte* Bytes(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

TEST(RowSelectionTest, EachShardGetsItsRowsInTheOrderOfTheList) {
  const std::vector<int64_t> row_ids = {11, 0, 4, 3, 0, 8};
  const auto split = SplitRows(kPlacement, row_ids);
  ASSERT_TRUE(split.ok());
  EXPECT_THAT((*split)[0].row_ids, ElementsAre(0, 3, 0));
  EXPECT_THAT((*split)[0].positions, ElementsAre(1, 3, 4));
  EXPECT_THAT((*split)[1].row_ids, ElementsAre(4));
  EXPECT_THAT((*split)[2].row_ids, ElementsAre(11, 8));
}

TEST(RowSelectionTest, RowsThatAreOneRunNeedNoPositions) {
  const std::vector<int64_t> row_ids = {1, 2, 5, 6, 7};
  const auto split = SplitRows(kPlacement, row_ids);
  ASSERT_TRUE(split.ok());
  EXPECT_THAT((*split)[1].positions, IsEmpty());
  EXPECT_EQ((*split)[1].first_position, 2);
  EXPECT_EQ((*split)[1].position(2), 4);
}

TEST(RowSelectionTest, NoRowsAreValid) {
  const auto split = SplitRows(kPlacement, {});
  ASSERT_TRUE(split.ok());
  EXPECT_EQ((*split)[0].size(), 0);
}

TEST(RowSelectionTest, TheFirstRowOutOfTheTableIsNamed) {
  const std::vector<int64_t> row_ids = {3, 12, -1};
  EXPECT_THAT(SplitRows(kPlacement, row_ids),
              StatusIs(absl::StatusCode::kOutOfRange,
                       "row id 12 at position 1, wanted one in [0, 12)"));
  const std::vector<int64_t> negative = {-1};
  EXPECT_THAT(SplitRows(kPlacement, negative),
              StatusIs(absl::StatusCode::kOutOfRange, "row id -1"));
}

TEST(RowSelectionTest, GatherTakesScatteredRowsAndRunsAlike) {
  const std::string buffer = "aabbccddee";
  std::string out(4, '?');
  RowSelection scattered{{0, 0, 0}, {0, 2, 4}, 0};
  scattered.Gather(Bytes(buffer), 2, 1, 2,
                   reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, "ccee");
  RowSelection run{{0, 0, 0}, {}, 1};
  run.Gather(Bytes(buffer), 2, 1, 2, reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, "ccdd");
}

TEST(RowSelectionTest, ScatterPutsRowsWhereGatherFindsThem) {
  std::string buffer = "..........";
  auto* const out = reinterpret_cast<std::byte*>(buffer.data());
  RowSelection scattered{{0, 0, 0}, {0, 2, 4}, 0};
  scattered.Scatter(Bytes("xxyy"), 2, 1, 2, out);
  EXPECT_EQ(buffer, "....xx..yy");
  RowSelection run{{0, 0}, {}, 0};
  run.Scatter(Bytes("zzww"), 2, 0, 2, out);
  EXPECT_EQ(buffer, "zzwwxx..yy");
}

}  // namespace
}  // namespace rowhouse::client::internal
