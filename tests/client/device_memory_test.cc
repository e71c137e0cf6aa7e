// Rows and gradients in a device's memory, by the same calls.

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/internal/trainer_core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/device_buffer.h"
#include "tests/client/fake_device.h"
#include "tests/client/trainer_fixture.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::DeviceBuffer;
using rowhouse::testing::FakeDevice;
using rowhouse::testing::Fault;
using rowhouse::testing::IsOk;
using rowhouse::testing::Random;
using rowhouse::testing::StatusIs;
using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

class DeviceMemoryTest : public TrainerTest {
 protected:
  DeviceMemoryTest() { cluster_ = servers_.Connect(nullptr, device_); }

  // Rows that differ from one another.
  static TableSpec UniformSpec() {
    TableSpec spec = Spec();
    spec.initializer = {Initializer::Kind::kUniform, 7, 1.0F};
    return spec;
  }

  DeviceBuffer<float> NewRows(size_t row_count) const {
    return {*device_, std::vector<float>(2 * row_count, -99)};
  }

  // Nothing of what a call began is left.
  void TearDown() override { EXPECT_EQ(device_->waiting_count(), 0); }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
};

// Ids of the host, of the device, and prepared, on one shard and on three.
TEST_F(DeviceMemoryTest, PullsGiveTheBitsOfHostMemory) {
  MakeTable(UniformSpec());
  const auto trainer = Join();
  Random random(11);
  SCOPED_TRACE(random.Trace());
  for (int round = 0; round < 20; ++round) {
    Ids row_ids(random.Integer(0, 20));
    const int64_t end = random.Chance(0.3) ? 3 : 11;
    for (int64_t& id : row_ids) id = random.Integer(0, end);
    const std::vector<float> wanted = *PullFloats(*trainer, row_ids);
    const auto out = NewRows(row_ids.size());
    ASSERT_THAT(trainer->Pull(row_ids, out.bytes()), IsOk());
    EXPECT_EQ(out.Read(), wanted) << "round " << round;

    const DeviceBuffer<int64_t> device_ids(*device_, row_ids);
    const auto second = NewRows(row_ids.size());
    ASSERT_THAT(trainer->Pull(device_ids.span(), second.bytes()), IsOk());
    EXPECT_EQ(second.Read(), wanted) << "round " << round;

    const auto list = trainer->PrepareRows(device_ids.span());
    ASSERT_THAT(list, IsOk());
    EXPECT_EQ(list->row_count(), std::ssize(row_ids));
    const auto third = NewRows(row_ids.size());
    const auto rows = trainer->PullAsync(*list, third.bytes()).Wait();
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(rows->row_count(), std::ssize(row_ids));
    EXPECT_EQ(third.Read(), wanted) << "round " << round;

    const auto again = NewRows(row_ids.size());
    ASSERT_THAT(trainer->Repull(*rows, again.bytes()), IsOk());
    EXPECT_EQ(again.Read(), wanted) << "round " << round;

    const auto read = NewRows(row_ids.size());
    ASSERT_THAT(cluster_->ReadRows("t", row_ids, read.bytes()), IsOk());
    EXPECT_EQ(read.Read(), wanted) << "round " << round;

    // A list serves host memory too.
    std::vector<float> host(wanted.size());
    ASSERT_THAT(trainer->Pull(*list, std::as_writable_bytes(std::span(host))),
                IsOk());
    EXPECT_EQ(host, wanted) << "round " << round;
  }
}

TEST_F(DeviceMemoryTest, PushesGiveTheBitsOfHostMemory) {
  const Ids row_ids = {11, 0, 5, 5, 1, 10, 4, 0, 2};
  std::vector<float> gradients(2 * row_ids.size());
  Random random(12);
  SCOPED_TRACE(random.Trace());
  for (float& g : gradients) g = random.Normal();
  std::vector<TableDigest> digests;
  for (int way = 0; way < 5; ++way) {
    MakeTable(UniformSpec());
    {
      const auto trainer = Join();
      trainer->core()->router().set_message_bytes(16);  // Two rows.
      const DeviceBuffer<float> held(*device_, gradients);
      const auto on_host = std::as_bytes(std::span(gradients));
      const auto list = trainer->PrepareRows(row_ids);
      ASSERT_THAT(list, IsOk());
      const auto out = NewRows(row_ids.size());
      const auto rows = trainer->Pull(*list, out.bytes());
      ASSERT_THAT(rows, IsOk());
      const auto push = [&]() -> absl::StatusOr<PushResult> {
        switch (way) {
          case 0:
            return trainer->Push(1, row_ids, on_host);
          case 1:
            return trainer->Push(1, row_ids, held.bytes());
          case 2:
            return trainer->Push(1, *list, held.bytes());
          case 3:
            return trainer->Push(1, *rows, held.bytes());
          default:
            return trainer->Push(1, *list, on_host);
        }
      };
      ASSERT_THAT(push(), IsOk());
      ASSERT_THAT(trainer->SealAndCommit(1, SignStep()), IsOk());
      ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
    }
    const auto digest = cluster_->Digest("t", 1);
    ASSERT_THAT(digest, IsOk());
    digests.push_back(*digest);
    EXPECT_EQ(digests.back(), digests.front()) << "way " << way;
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
}

TEST_F(DeviceMemoryTest, BadInputIsRefusedAndChangesNothing) {
  MakeTable(Spec());
  const auto trainer = Join();
  // The device's first memory, begun too early; then too much of it.
  const auto out = NewRows(2);
  const std::span<std::byte> astride(out.bytes().data() - 8, 16);
  EXPECT_THAT(trainer->Pull(Ids{1, 2}, astride),
              StatusIs(absl::StatusCode::kInvalidArgument, "of 16 bytes"));
  EXPECT_THAT(trainer->Push(1, Ids{1, 2}, astride),
              StatusIs(absl::StatusCode::kInvalidArgument, "of 16 bytes"));
  EXPECT_THAT(trainer->Pull(Ids{1}, out.bytes()),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  EXPECT_THAT(trainer->Push(1, Ids{1}, out.bytes()),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  const DeviceBuffer<int64_t> bad(*device_, {3, 12});
  EXPECT_THAT(trainer->Pull(bad.span(), out.bytes()),
              Fails(absl::StatusCode::kOutOfRange, "ROW_OUT_OF_TABLE"));
  EXPECT_THAT(trainer->PrepareRows(bad.span()),
              StatusIs(absl::StatusCode::kOutOfRange, "position 1"));
  EXPECT_EQ(out.Read(), std::vector<float>(4, -99));
  // Without memory for the ids there is no list.
  device_->fail_allocations = true;
  EXPECT_THAT(trainer->PrepareRows(Ids{1}),
              StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
  device_->fail_allocations = false;
  // A part with a bad value is refused as from host memory.
  const DeviceBuffer<float> infinite(*device_, {1, 2, 3, INFINITY});
  EXPECT_THAT(trainer->Push(1, Ids{1, 9}, infinite.bytes(), {.part = 0}),
              Fails(absl::StatusCode::kInvalidArgument, "NOT_FINITE"));
}

TEST_F(DeviceMemoryTest, ADeviceAtFaultFailsTheCallAndNoOther) {
  MakeTable(UniformSpec());
  const auto trainer = Join();
  const Ids row_ids = {3, 9, 0};
  const auto list = trainer->PrepareRows(row_ids);
  const auto out = NewRows(3);
  const DeviceBuffer<float> gradients(*device_, {1, 1, 1, 1, 1, 1});
  device_->fail_work = true;
  EXPECT_THAT(trainer->Pull(*list, out.bytes()),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  EXPECT_THAT(trainer->Push(1, *list, gradients.bytes(), {.part = 0}),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  EXPECT_THAT(trainer->PrepareRows(row_ids),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  device_->fail_work = false;
  ASSERT_THAT(trainer->Pull(*list, out.bytes()), IsOk());
  EXPECT_EQ(out.Read(), *PullFloats(*trainer, row_ids));
  EXPECT_THAT(trainer->Push(1, *list, gradients.bytes(), {.part = 0}), IsOk());
}

TEST_F(DeviceMemoryTest, LostAnswersAndRepeatsLandTheSameRows) {
  MakeTable(UniformSpec());
  int calls = 0;
  const auto other = servers_.Connect(
      [&](int32_t, std::string_view method) {
        if (method != "Pull" && method != "Push") return Fault::kNone;
        constexpr Fault kFaults[] = {Fault::kLoseAnswer, Fault::kLoseRequest,
                                     Fault::kRepeat, Fault::kNone};
        return kFaults[calls++ % 4];
      },
      device_);
  const auto trainer = JoinBy(*other, 0);
  const Ids row_ids = {1, 0, 3, 1, 2, 0, 3};  // Of one shard.
  const auto out = NewRows(row_ids.size());
  const auto rows = trainer->Pull(row_ids, out.bytes());
  ASSERT_THAT(rows, IsOk());
  const auto reader = Join();
  EXPECT_EQ(out.Read(), *PullFloats(*reader, row_ids));
}

TEST_F(DeviceMemoryTest, AListOutlivesTrainerAndCluster) {
  MakeTable(UniformSpec());
  RowList list;
  EXPECT_EQ(list.row_count(), 0);
  {
    const auto trainer = Join();
    EXPECT_THAT(trainer->Pull(list, {}), IsOk());
    list = *trainer->PrepareRows(Ids{1, 5});
  }
  cluster_.reset();
  EXPECT_EQ(list.row_count(), 2);
  EXPECT_GT(device_->held_bytes(), 0);
  list = RowList();
  EXPECT_EQ(device_->held_bytes(), 0);
}

}  // namespace
}  // namespace rowhouse::client
