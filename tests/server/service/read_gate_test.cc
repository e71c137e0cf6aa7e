// Who ends a call that receives: alone, and with a shard that revokes.

#include "server/service/read_gate.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/shard/shard_part_fixture.h"

namespace rowhouse::testing {
namespace {

using server::ReadGate;

const absl::Status& Reason() {
  static const auto* const kReason =
      new absl::Status(absl::AbortedError("reason"));
  return *kReason;
}

TEST(ReadGateTest, AnInterruptionDuringAReadIsTheInterruptersToEnd) {
  ReadGate gate;
  EXPECT_THAT(gate.Read([] {}), IsOk());
  EXPECT_TRUE(gate.Interrupt(Reason()));
  EXPECT_FALSE(gate.Enter());
}

TEST(ReadGateTest, AnInterruptionDuringAReactionEndsTheNextRead) {
  ReadGate gate;
  EXPECT_THAT(gate.Read([] {}), IsOk());
  EXPECT_TRUE(gate.Enter());
  EXPECT_FALSE(gate.Interrupt(Reason()));
  bool started = false;
  EXPECT_THAT(gate.Read([&] { started = true; }),
              StatusIs(absl::StatusCode::kAborted, "reason"));
  EXPECT_FALSE(started);
}

// A call as PushCall is one, with a thread in place of gRPC: a reaction lands
// a message and reads on, and always finds another message.
class Receiver {
 public:
  Receiver(server::Shard& shard, PartToPush part)
      : part_(std::move(part)), thread_([this] { Run(); }) {
    Pending<absl::Status> begun;
    shard.BeginPart({part_.trainer, part_.event, part_.part, kRows, {}},
                    BlockingShard::NewCall(),
                    [this, answer = begun.Callback()](auto landing) mutable {
                      absl::Status status = landing.status();
                      Begin(*std::move(landing));
                      answer(std::move(status));
                    });
    EXPECT_THAT(begun.Wait(), IsOk());
  }

  // Waits for its end.
  ~Receiver() {
    thread_.join();
    EXPECT_EQ(end_count_, 1);
    EXPECT_EQ(landing_, nullptr);
  }

 private:
  static constexpr int64_t kRows = int64_t{1} << 20;

  void Begin(std::unique_ptr<server::PartLanding> landing) {
    landing_ = std::move(landing);
    landing_->set_on_revoked([this, gate = gate_](const absl::Status& reason) {
      if (gate->Interrupt(reason)) End();
    });
    EXPECT_THAT(gate_->Read([this] { read_ = true; }), IsOk());
  }

  void Run() {
    while (end_count_ == 0) {
      if (!read_.exchange(false)) {
        std::this_thread::yield();
        continue;
      }
      if (!gate_->Enter()) return;
      absl::Status status = landing_->Append(row_, part_.row_ids, part_.rows);
      ++row_;
      if (status.ok()) status = gate_->Read([this] { read_ = true; });
      if (!status.ok()) End();
    }
  }

  void End() {
    landing_ = nullptr;
    ++end_count_;
  }

  const PartToPush part_;
  const std::shared_ptr<ReadGate> gate_ = std::make_shared<ReadGate>();
  std::unique_ptr<server::PartLanding> landing_;
  int64_t row_ = 0;
  std::atomic<bool> read_ = false;
  std::atomic<int> end_count_ = 0;
  std::thread thread_;
};

class ReceiverTest : public PartTest {
 protected:
  ReceiverTest() { spec_.max_contribution_row_count = int64_t{1} << 21; }
};

TEST_F(ReceiverTest, PartsThatAreRevokedWhileTheyLandEndOnce) {
  StartWithSessions();
  for (int64_t round = 0; round < 50; ++round) {
    const server::TrainerSession trainer{0, round + 2};
    ASSERT_THAT(shard_->OpenSession(trainer), IsOk());
    std::vector<std::unique_ptr<Receiver>> receivers;
    for (int i = 0; i < 3; ++i) {
      receivers.push_back(
          std::make_unique<Receiver>(*owned_, OneRow(trainer, 1, 0, 3)));
    }
    switch (round % 3) {
      case 0:
        ASSERT_THAT(shard_->Discard(trainer, 1), IsOk());
        break;
      case 1:
        ASSERT_THAT(shard_->OpenSession({0, round + 3}), IsOk());
        break;
      default:
        ASSERT_THAT(shard_->Reset(), IsOk());
        break;
    }
  }
}

}  // namespace
}  // namespace rowhouse::testing
