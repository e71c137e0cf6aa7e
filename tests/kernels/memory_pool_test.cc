#include "kernels/memory_pool.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::Random;
using ::rowhouse::testing::StatusIs;

constexpr int64_t kSlack = 1 << 20;

// A device of so many bytes.
class Device {
 public:
  explicit Device(int64_t size_bytes) : free_bytes_(size_bytes) {}

  absl::StatusOr<Buffer> Allocate(int64_t size_bytes) {
    if (size_bytes < 0 || size_bytes > free_bytes_) {
      return absl::ResourceExhaustedError("the device is full");
    }
    free_bytes_ -= size_bytes;
    return Buffer(
        ::operator new (static_cast<size_t>(size_bytes), std::align_val_t{256}),
        size_bytes,
        [](void* device, void* data, int64_t freed_bytes) {
          ::operator delete (data, std::align_val_t{256});
          static_cast<Device*>(device)->free_bytes_ += freed_bytes;
        },
        this);
  }
  MemoryPool::Source Source() {
    return [this](int64_t size_bytes) { return Allocate(size_bytes); };
  }
  int64_t free_bytes() const { return free_bytes_; }

 private:
  int64_t free_bytes_;
};

Buffer Take(MemoryPool& pool, int64_t size_bytes) {
  absl::StatusOr<Buffer> buffer = pool.Allocate(size_bytes);
  EXPECT_THAT(buffer, IsOk());
  return buffer.ok() ? *std::move(buffer) : Buffer();
}

TEST(MemoryPoolTest, HasRoomForWhatWasSetAsideWhateverOthersTake) {
  Device device(kSlack + 5000);
  MemoryPool pool(device.Source());
  ASSERT_THAT(pool.SetAside(5000), IsOk());
  EXPECT_EQ(device.free_bytes(), 0);
  const Buffer first = Take(pool, 1000);
  const Buffer second = Take(pool, 4000);
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(second.size_bytes(), 4000);
  pool.GiveBack(5000);
}

TEST(MemoryPoolTest, RefusesToSetAsideWhatThereIsNot) {
  Device device(kSlack + 5000);
  MemoryPool pool(device.Source());
  ASSERT_THAT(pool.SetAside(5000), IsOk());
  EXPECT_THAT(pool.SetAside(1),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  EXPECT_THAT(pool.SetAside(std::numeric_limits<int64_t>::max()),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  pool.GiveBack(5000);
  EXPECT_EQ(device.free_bytes(), kSlack + 5000);
}

TEST(MemoryPoolTest, TakesFromTheDeviceWhatWasNotSetAside) {
  Device device(3000);
  MemoryPool pool(device.Source());
  {
    const Buffer buffer = Take(pool, 1000);
    EXPECT_EQ(device.free_bytes(), 2000);
    EXPECT_THAT(pool.Allocate(2001),
                StatusIs(absl::StatusCode::kResourceExhausted, "full"));
    EXPECT_THAT(pool.Allocate(-1),
                StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  }
  EXPECT_EQ(device.free_bytes(), 3000);
}

TEST(MemoryPoolTest, GivesABlockBackWhenItsLastBufferIsFreed) {
  constexpr int64_t kAll = 100 * kSlack;
  Device device(kAll);
  MemoryPool pool(device.Source());
  ASSERT_THAT(pool.SetAside(kSlack), IsOk());
  Buffer buffer = Take(pool, 1000);
  pool.GiveBack(kSlack);
  EXPECT_EQ(device.free_bytes(), kAll - 2 * kSlack);
  { const Buffer freed = std::move(buffer); }
  EXPECT_EQ(device.free_bytes(), kAll);
}

TEST(MemoryPoolTest, KeepsEnoughForTheRest) {
  constexpr int64_t kAll = 100 * kSlack;
  Device device(kAll);
  MemoryPool pool(device.Source());
  ASSERT_THAT(pool.SetAside(2 * kSlack), IsOk());
  ASSERT_THAT(pool.SetAside(4 * kSlack), IsOk());
  pool.GiveBack(2 * kSlack);
  EXPECT_EQ(device.free_bytes(), kAll - 5 * kSlack);
  EXPECT_THAT(pool.SetAside(95 * kSlack),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
  const Buffer buffer = Take(pool, 4 * kSlack);
  EXPECT_EQ(device.free_bytes(), kAll - 5 * kSlack);
  pool.GiveBack(4 * kSlack);
}

TEST(MemoryPoolTest, RoomThatOthersKeepFromTheDeviceIsSetAsideAgain) {
  Device device(20 * kSlack);
  MemoryPool pool(device.Source());
  // The second's small buffer takes the smallest piece: the first's rest.
  ASSERT_THAT(pool.SetAside(12 * kSlack), IsOk());
  Buffer first = Take(pool, 12 * kSlack);
  ASSERT_THAT(pool.SetAside(4 * kSlack), IsOk());
  const Buffer second = Take(pool, 1000);
  { const Buffer freed = std::move(first); }
  pool.GiveBack(12 * kSlack);
  // The second holds on to the first's block, which has room for its rest too.
  ASSERT_EQ(device.free_bytes(), 7 * kSlack);
  ASSERT_THAT(pool.SetAside(12 * kSlack), IsOk());  // 8 there, 4 more.
  const Buffer again = Take(pool, 12 * kSlack);
  EXPECT_EQ(device.free_bytes(), 2 * kSlack);
  EXPECT_THAT(pool.SetAside(3 * kSlack),
              StatusIs(absl::StatusCode::kResourceExhausted, "full"));
}

TEST(MemoryPoolTest, BuffersOverlapNever) {
  Random random(3);
  SCOPED_TRACE(random.Trace());
  constexpr int64_t kAll = int64_t{1} << 30;
  Device device(kAll);
  int64_t aside = 0;
  {
    MemoryPool pool(device.Source());
    struct Filled {
      Buffer buffer;
      uint8_t value;
    };
    std::vector<Filled> live;
    for (int step = 0; step < 3000; ++step) {
      const int64_t kind = random.Integer(0, 9);
      if (kind == 0 && aside < 64 * 10000) {
        ASSERT_THAT(pool.SetAside(10000), IsOk());
        aside += 10000;
      } else if (kind == 1 && aside > 0) {
        pool.GiveBack(10000);
        aside -= 10000;
      } else if (kind < 6) {
        const auto value = static_cast<uint8_t>(step);
        Buffer buffer = Take(pool, random.Integer(1, 3000));
        ASSERT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0U);
        std::memset(buffer.data(), value,
                    static_cast<size_t>(buffer.size_bytes()));
        live.push_back({std::move(buffer), value});
      } else if (!live.empty()) {
        const auto at = static_cast<size_t>(
            random.Integer(0, static_cast<int64_t>(live.size()) - 1));
        std::swap(live[at], live.back());
        const Filled& last = live.back();
        for (int64_t i = 0; i < last.buffer.size_bytes(); ++i) {
          ASSERT_EQ(last.buffer.as<uint8_t>()[i], last.value) << step;
        }
        live.pop_back();
      }
    }
    live.clear();
    pool.GiveBack(aside);
    EXPECT_EQ(device.free_bytes(), kAll);  // All pieces have grown together.
  }
}

}  // namespace
}  // namespace rowhouse::kernels
