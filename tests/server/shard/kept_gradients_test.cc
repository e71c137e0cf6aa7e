#include "server/shard/kept_gradients.h"

#include <memory>

#include "gmock/gmock.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "server/shard/dense_store.h"
#include "tests/server/shard/failing_backend.h"

namespace rowhouse::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class KeptGradientsTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const HeadOperands> Call() {
    return std::make_shared<const HeadOperands>();
  }

  testing::FailingBackend backend_{
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(1))};
  KeptGradients kept_{backend_, 1000};
};

TEST_F(KeptGradientsTest, GivesEachCallItsOwn) {
  const auto a = Call();
  const auto b = Call();
  const auto room_a = kept_.Keep(a, 400, 400);
  const auto room_b = kept_.Keep(b, 500, 500);
  ASSERT_THAT(room_a, SizeIs(400));
  ASSERT_THAT(room_b, SizeIs(500));
  EXPECT_EQ(kept_.Find(a.get()).data(), room_a.data());
  EXPECT_EQ(kept_.Find(b.get()).data(), room_b.data());
  EXPECT_THAT(kept_.Find(b.get()), SizeIs(500));
  EXPECT_THAT(kept_.Find(Call().get()), IsEmpty());
}

TEST_F(KeptGradientsTest, HasRoomForSoManyBytesOnly) {
  const auto a = Call();
  EXPECT_THAT(kept_.Keep(a, 1001, 2000), IsEmpty());
  EXPECT_THAT(kept_.Keep(a, 600, 600), SizeIs(600));
  const auto b = Call();
  EXPECT_THAT(kept_.Keep(b, 401, 401), IsEmpty());
  EXPECT_THAT(kept_.Find(b.get()), IsEmpty());
  EXPECT_THAT(kept_.Keep(b, 400, 400), SizeIs(400));
  EXPECT_THAT(kept_.Keep(Call(), 0, 100), IsEmpty());
}

TEST_F(KeptGradientsTest, GivesWhatIsLeftToACallThatCanUseIt) {
  const auto a = Call();
  EXPECT_THAT(kept_.Keep(a, 300, 700), SizeIs(700));
  const auto b = Call();
  EXPECT_THAT(kept_.Keep(b, 300, 700), SizeIs(300));
  EXPECT_THAT(kept_.Find(b.get()), SizeIs(300));
  kept_.DropAll();
  // More than any of the two had, and all there is.
  EXPECT_THAT(kept_.Keep(b, 300, 1700), SizeIs(1000));
  const auto* const all = kept_.Find(b.get()).data();
  kept_.Drop(b.get());
  EXPECT_EQ(kept_.Keep(a, 300, 1800).data(), all);
}

TEST_F(KeptGradientsTest, UsesMemoryAgainThatWasDroppedOrWhoseCallHasGone) {
  const auto a = Call();
  auto b = Call();
  const auto* const first = kept_.Keep(a, 600, 600).data();
  const auto* const second = kept_.Keep(b, 400, 400).data();
  const int64_t taken = testing::FailingBackend::live_bytes;
  kept_.Drop(a.get());
  EXPECT_THAT(kept_.Find(a.get()), IsEmpty());
  b.reset();
  EXPECT_EQ(kept_.Keep(a, 500, 500).data(), first);
  EXPECT_THAT(kept_.Find(a.get()), SizeIs(500));
  const auto c = Call();
  EXPECT_EQ(kept_.Keep(c, 300, 300).data(), second);
  EXPECT_EQ(testing::FailingBackend::live_bytes, taken);
}

TEST_F(KeptGradientsTest, FreesMemoryThatIsTooSmall) {
  auto a = Call();
  kept_.Keep(a, 600, 600);
  kept_.DropAll();
  EXPECT_THAT(kept_.Find(a.get()), IsEmpty());
  EXPECT_THAT(kept_.Keep(a, 900, 900), SizeIs(900));
}

TEST_F(KeptGradientsTest, KeepsNothingWithoutMemory) {
  backend_.fail_allocations = true;
  const auto a = Call();
  EXPECT_THAT(kept_.Keep(a, 100, 100), IsEmpty());
  backend_.fail_allocations = false;
  EXPECT_THAT(kept_.Keep(a, 100, 100), SizeIs(100));
  kept_.Free();
  EXPECT_THAT(kept_.Find(a.get()), IsEmpty());
}

ShardSpec SpecOf(int64_t row_count, int64_t token_count) {
  ShardSpec spec{.table = "tables/t",
                 .placement = wire::Placement::Even(2 * row_count, 2),
                 .shard_index = 1,
                 .dim = 3,
                 .row_dtype = kernels::DType::kFp32,
                 .gradient_dtype = kernels::DType::kFp32,
                 .initializer = {},
                 .trainer_count = 3,
                 .max_contribution_row_count = 10};
  spec.dense.emplace();
  spec.dense->max_head_token_count = token_count;
  return spec;
}

TEST(KeptBytesTest, IsOneCallOfEveryTrainer) {
  ShardSpec spec = SpecOf(51, 10);
  spec.dense->has_bias = false;
  // In units of 256: 10 * 2 * 4 = 80, then 10 * (51 + 8) * 4 = 2360.
  EXPECT_EQ(DenseStore::KeptBytes(spec, {}), 3 * (2560 + 256));
  ShardLimits limits;
  limits.head_blocks = {4, 100};
  spec.dense->has_bias = true;  // Before them sums of 3 blocks of tokens: 612.
  EXPECT_EQ(DenseStore::KeptBytes(spec, limits), 3 * (2560 + 768 + 256));
  EXPECT_EQ(DenseStore::KeptBytes(SpecOf(51, 0), {}), 0);
}

TEST(KeptBytesTest, IsBounded) {
  ShardLimits limits;
  limits.logits_budget_bytes = 12345;
  for (const int64_t count : {int64_t{1} << 20, int64_t{1} << 40}) {
    EXPECT_EQ(DenseStore::KeptBytes(SpecOf(count, count), limits), 12345);
  }
  limits.logits_budget_bytes = 0;
  EXPECT_EQ(DenseStore::KeptBytes(SpecOf(51, 10), limits), 0);
}

}  // namespace
}  // namespace rowhouse::server
