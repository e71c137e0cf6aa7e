// Head calls whose hidden states, targets and gradients are on a device.

#include <memory>
#include <span>
#include <vector>

#include "tests/client/device_buffer.h"
#include "tests/client/fake_device.h"
#include "tests/client/head_fixture.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::DeviceBuffer;
using rowhouse::testing::FakeDevice;
using rowhouse::testing::Fault;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;

class LmHeadDeviceTest : public HeadTest {
 protected:
  LmHeadDeviceTest() { cluster_ = servers_.Connect(nullptr, device_); }
  void TearDown() override {
    EXPECT_EQ(device_->waiting_count(), 0);
    EXPECT_EQ(device_->held_bytes(), 0);
  }

  struct Outcome {
    std::vector<float> losses;
    std::vector<std::byte> gradient;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  // One call's forward and backward, all of it in the host's memory.
  Outcome OnHost(LmHead& head, const Call& call, const HeadOptions& options,
                 DType gradient_dtype) {
    Outcome outcome;
    const auto loss = head.Forward(call.get(), options);
    EXPECT_THAT(loss, IsOk());
    if (!loss.ok()) return outcome;
    outcome.gradient.resize(call.batch.hidden.size() *
                            static_cast<size_t>(SizeOf(gradient_dtype)));
    EXPECT_THAT((*loss)->Backward(0.5, outcome.gradient,
                                  {.gradient_dtype = gradient_dtype}),
                IsOk());
    outcome.losses = {(*loss)->token_losses().begin(),
                      (*loss)->token_losses().end()};
    return outcome;
  }

  // The same in the device's.
  Outcome OnDevice(LmHead& head, const Call& call, const HeadOptions& options,
                   DType gradient_dtype) {
    Outcome outcome;
    const DeviceBuffer<std::byte> hidden(*device_, call.bytes);
    const DeviceBuffer<int64_t> targets(*device_, call.batch.targets);
    const DeviceBuffer<std::byte> gradient(
        *device_,
        std::vector<std::byte>(call.batch.hidden.size() *
                               static_cast<size_t>(SizeOf(gradient_dtype))));
    const auto loss = head.Forward(
        {hidden.bytes(), call.get().hidden_dtype, targets.span()}, options);
    EXPECT_THAT(loss, IsOk());
    if (!loss.ok()) return outcome;
    EXPECT_THAT((*loss)->Backward(0.5, gradient.bytes(),
                                  {.gradient_dtype = gradient_dtype}),
                IsOk());
    outcome.gradient = gradient.Read();
    outcome.losses = {(*loss)->token_losses().begin(),
                      (*loss)->token_losses().end()};
    return outcome;
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
};

TEST_F(LmHeadDeviceTest, CallsGiveTheBitsOfHostMemory) {
  Random random(41);
  SCOPED_TRACE(random.Trace());
  TableSpec spec = Spec();
  MakeHead(spec, random);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16}) {
    for (const int64_t token_count : {0, 1, 20}) {
      const Call call(RandomBatch(random, spec, token_count, dtype));
      const HeadOptions options{.event = 1, .frozen_weights = true};
      for (const DType to : {dtype, DType::kFp32}) {
        EXPECT_TRUE(OnDevice(*head, call, options, to) ==
                    OnHost(*head, call, options, to))
            << token_count << " tokens";
      }
      const DeviceBuffer<std::byte> hidden(*device_, call.bytes);
      const auto wanted =
          head->Evaluate(call.get(), {.event = 1, .token_losses = true});
      const auto found =
          head->Evaluate({hidden.bytes(), dtype, call.batch.targets},
                         {.event = 1, .token_losses = true});
      ASSERT_THAT(wanted, IsOk());
      ASSERT_THAT(found, IsOk());
      EXPECT_EQ(found->token_losses, wanted->token_losses);
    }
  }
}

TEST_F(LmHeadDeviceTest, WeightGradientsAreTheSameToo) {
  std::vector<uint64_t> digests;
  for (const bool on_device : {false, true}) {
    Random random(42);
    SCOPED_TRACE(random.Trace());
    MakeHead(Spec(), random);
    {
      const auto trainer = Join();
      const auto head = HeadOf(*trainer);
      const Call call(RandomBatch(random, Spec(), 30));
      const HeadOptions options{.event = 1};
      if (on_device) {
        OnDevice(*head, call, options, DType::kFp32);
      } else {
        OnHost(*head, call, options, DType::kFp32);
      }
      ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
      ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
      digests.push_back(DigestAt(1));
    }
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
  EXPECT_EQ(digests[1], digests[0]);
}

TEST_F(LmHeadDeviceTest, AFaultOfTheDeviceMayBeFollowedByTheSameCall) {
  Random random(43);
  SCOPED_TRACE(random.Trace());
  MakeHead(Spec(), random);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const Call call(RandomBatch(random, Spec(), 20));
  const HeadOptions options{.event = 1, .part = 0};
  const DeviceBuffer<std::byte> hidden(*device_, call.bytes);
  const DeviceBuffer<std::byte> gradient(
      *device_, std::vector<std::byte>(call.bytes.size()));
  const HeadBatch batch = {hidden.bytes(), DType::kFp32, call.batch.targets};
  device_->fail_work = true;
  EXPECT_THAT(head->Forward(batch, options),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  device_->fail_work = false;
  const auto loss = head->Forward(batch, options);
  ASSERT_THAT(loss, IsOk());
  device_->fail_work = true;
  EXPECT_THAT((*loss)->Backward(0.5, gradient.bytes()),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  device_->fail_work = false;
  device_->fail_allocations = true;
  EXPECT_THAT((*loss)->Backward(0.5, gradient.bytes()),
              StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
  device_->fail_allocations = false;
  ASSERT_THAT((*loss)->Backward(0.5, gradient.bytes()), IsOk());
  const Outcome wanted =
      OnHost(*head, call, {.event = 1, .frozen_weights = true}, DType::kFp32);
  EXPECT_TRUE(gradient.Read() == wanted.gradient);
}

TEST_F(LmHeadDeviceTest, BadInputIsRefused) {
  Random random(44);
  MakeHead(Spec(), random);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const DeviceBuffer<float> hidden(*device_, std::vector<float>(16, 1));
  const DeviceBuffer<int64_t> targets(*device_, {3, 17});
  EXPECT_THAT(head->Forward({hidden.bytes(), DType::kFp32, targets.span()},
                            {.event = 1}),
              StatusIs(absl::StatusCode::kOutOfRange, "position 1"));
  const std::span<std::byte> astride(hidden.bytes().data() - 4, 64);
  EXPECT_THAT(
      head->Forward({astride, DType::kFp32, targets.span()}, {.event = 1}),
      StatusIs(absl::StatusCode::kInvalidArgument, "of 64 bytes"));
}

}  // namespace
}  // namespace rowhouse::client
