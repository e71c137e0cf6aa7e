#include "proto/wire/block_pool.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::wire {
namespace {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::StatusIs;

BlockPool::Memory NewBlock() {
  return {new std::byte[64], std::default_delete<std::byte[]>()};
}

TEST(BlockPoolTest, ABlockThatIsFreeIsUsedAgain) {
  BlockPool pool(
      []() -> absl::StatusOr<BlockPool::Memory> { return NewBlock(); });
  const std::byte* memory = nullptr;
  {
    auto block = pool.Take();
    ASSERT_THAT(block, IsOk());
    memory = block->data();
    EXPECT_EQ(pool.used_count(), 1);
  }
  EXPECT_EQ(pool.used_count(), 0);
  auto again = pool.Take();
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->data(), memory);
  EXPECT_EQ(pool.block_count(), 1);
}

TEST(BlockPoolTest, ABlockIsFreeOnlyWhenTheLastOfItsSliceIs) {
  BlockPool pool(
      []() -> absl::StatusOr<BlockPool::Memory> { return NewBlock(); });
  auto held = std::make_shared<int>(1);
  auto block = pool.Take(held);
  ASSERT_THAT(block, IsOk());
  const std::byte* const memory = block->data();
  {
    const grpc::Slice slice = std::move(*block).ToSlice(10);
    EXPECT_EQ(slice.size(), 10U);
    EXPECT_EQ(slice.begin(), reinterpret_cast<const uint8_t*>(memory));
    const grpc::Slice other = slice;
    EXPECT_EQ(held.use_count(), 2);
    auto second = pool.Take();
    ASSERT_THAT(second, IsOk());
    EXPECT_NE(second->data(), memory);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(pool.used_count(), 0);
}

TEST(BlockPoolTest, WithoutMemoryThereIsNoBlock) {
  BlockPool pool([]() -> absl::StatusOr<BlockPool::Memory> {
    return absl::ResourceExhaustedError("no memory");
  });
  EXPECT_THAT(pool.Take(),
              StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
  EXPECT_EQ(pool.block_count(), 0);
}

TEST(BlockPoolTest, ABlockMayOutliveItsPool) {
  BlockPool::Block block;
  {
    BlockPool pool(
        []() -> absl::StatusOr<BlockPool::Memory> { return NewBlock(); });
    auto taken = pool.Take();
    ASSERT_THAT(taken, IsOk());
    block = *std::move(taken);
  }
  block.data()[63] = std::byte{1};
}

}  // namespace
}  // namespace rowhouse::wire
