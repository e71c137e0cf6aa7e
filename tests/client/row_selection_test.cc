#include "client/internal/row_selection.h"

#include <cstring>
#include <string>
#include <string_view>
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
  scattered.Scatter(std::string_view("xxyy"), 2, 1, 2, out);
  EXPECT_EQ(buffer, "....xx..yy");
  RowSelection run{{0, 0}, {}, 0};
  run.Scatter(std::string_view("zzww"), 2, 0, 2, out);
  EXPECT_EQ(buffer, "zzwwxx..yy");
}

// Rows of an answer of 8 MiB and more go past the caches; cut anywhere, and
// from and to any alignment.
TEST(RowSelectionTest, ScatterPutsLargeAnswersWhereSmallOnesGo) {
  constexpr int64_t kRowBytes = 1000;
  constexpr int64_t kRows = 9000;
  constexpr int64_t kLanded = 40;
  std::string rows(kLanded * kRowBytes, '\0');
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<char>(i % 251);
  const std::string_view all = rows;
  const std::vector<std::string_view> pieces = {
      all.substr(0, 999), all.substr(999, 0), all.substr(999, 3500),
      all.substr(4499)};
  RowSelection scattered;
  scattered.row_ids.resize(kRows);
  for (int64_t i = 0; i < kRows; ++i) scattered.positions.push_back(i + i % 2);
  RowSelection run;
  run.row_ids.resize(kRows);
  run.first_position = 1;
  for (const RowSelection& selection : {scattered, run}) {
    std::string buffer((kRows + 2) * kRowBytes, '.');
    std::string expected = buffer;
    selection.Scatter(kernels::HostPieces(pieces), kRowBytes, 5, kLanded,
                      reinterpret_cast<std::byte*>(buffer.data()));
    for (int64_t i = 0; i < kLanded; ++i) {
      expected.replace(selection.position(5 + i) * kRowBytes, kRowBytes,
                       all.substr(i * kRowBytes, kRowBytes));
    }
    EXPECT_TRUE(buffer == expected);
  }
}

}  // namespace
}  // namespace rowhouse::client::internal
