#include "server/shard/ledger.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::server {
namespace {

using ::rowhouse::testing::Detail;
using ::rowhouse::testing::Fails;
using ::rowhouse::testing::IsOk;

constexpr auto kExists = absl::StatusCode::kAlreadyExists;
constexpr PartName kName{4, 1, 2};

PartContent Content(std::vector<int64_t> handles = {}) {
  return {3, kernels::ContentSum{1, 2}, {3, 4}, std::move(handles)};
}

TEST(LedgerTest, TheSamePartGetsTheFirstAnswerAgain) {
  Ledger ledger;
  ASSERT_FALSE(ledger.Knows(kName));
  ledger.Record(kName, Content(), {3, 3, false});
  ASSERT_TRUE(ledger.Knows(kName));
  const auto answer = ledger.Answer(kName, Content());
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->event, 3);
  EXPECT_EQ(answer->row_count, 3);
  EXPECT_TRUE(answer->duplicate);
}

TEST(LedgerTest, OtherContentUnderTheNameIsRefused) {
  Ledger ledger;
  ledger.Record(kName, Content(), {3, 3, false});
  PartContent ids = Content();
  ids.ids->high ^= 1;
  EXPECT_THAT(ledger.Answer(kName, ids), Fails(kExists, "PART_DIFFERS"));
  EXPECT_EQ(Detail(ledger.Answer(kName, ids), "difference"), "row ids");
  PartContent rows = Content();
  rows.rows.low ^= 1;
  EXPECT_EQ(Detail(ledger.Answer(kName, rows), "difference"), "rows");
  PartContent count = Content();
  count.row_count = 2;
  EXPECT_EQ(Detail(ledger.Answer(kName, count), "difference"), "row count");
}

TEST(LedgerTest, EqualHandlesStandForEqualIds) {
  Ledger ledger;
  ledger.Record(kName, Content({7, 8}), {3, 3, false});
  PartContent unresolved = Content({7, 8});
  unresolved.ids = std::nullopt;
  EXPECT_TRUE(ledger.HasHandles(kName, {7, 8}));
  EXPECT_THAT(ledger.Answer(kName, unresolved), IsOk());
}

TEST(LedgerTest, IdsMayComeInPlaceOfHandlesThatHaveGone) {
  Ledger ledger;
  ledger.Record(kName, Content({7, 8}), {3, 3, false});
  EXPECT_FALSE(ledger.HasHandles(kName, {}));
  EXPECT_THAT(ledger.Answer(kName, Content()), IsOk());
}

TEST(LedgerTest, OtherHandlesOfTheSameRowsAreTheSame) {
  Ledger ledger;
  ledger.Record(kName, Content({7}), {3, 3, false});
  EXPECT_THAT(ledger.Answer(kName, Content({9})), IsOk());
}

TEST(LedgerTest, DropForgetsOneRanksPartsOfOneEvent) {
  Ledger ledger;
  const PartName dropped[] = {{4, 1, 0}, {4, 1, 65535}};
  const PartName kept[] = {{3, 1, 0}, {4, 0, 0}, {4, 2, 0}, {5, 1, 0}};
  for (const PartName& name : dropped) ledger.Record(name, Content(), {});
  for (const PartName& name : kept) ledger.Record(name, Content(), {});
  ledger.Drop(4, 1);
  for (const PartName& name : dropped) EXPECT_FALSE(ledger.Knows(name));
  for (const PartName& name : kept) EXPECT_TRUE(ledger.Knows(name));
}

TEST(LedgerTest, DropBeforeForgetsOlderEvents) {
  Ledger ledger;
  ledger.Record({3, 4095, 7}, Content(), {});
  ledger.Record({4, 0, 0}, Content(), {});
  ledger.DropBefore(4);
  EXPECT_FALSE(ledger.Knows({3, 4095, 7}));
  EXPECT_TRUE(ledger.Knows({4, 0, 0}));
}

}  // namespace
}  // namespace rowhouse::server
