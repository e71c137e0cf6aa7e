#ifndef ROWHOUSE_TESTS_SERVER_SHARD_HEAD_FIXTURE_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_HEAD_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/shard/head_call.h"
#include "tests/server/shard/shard_fixture.h"

namespace rowhouse::testing {

/// One shard of a dense table: 4 rows of 2 fp32, zeros, a bias; 2 trainers with
/// at most 10 head tokens each. With zero weights every probability is 1/4.
class HeadTest : public ShardTest {
 protected:
  using Head = std::unique_ptr<server::HeadCall>;

  HeadTest() {
    spec_.placement = wire::Placement::Even(4, 1);
    spec_.dense = server::DenseSpec{.main_grad_dtype = kernels::DType::kFp32,
                                    .has_master = false,
                                    .has_bias = true,
                                    .max_head_token_count = 10};
  }

  static server::HeadHeader Header(server::TrainerSession trainer,
                                   int64_t event, int32_t part = 0,
                                   int64_t token_count = 1) {
    server::HeadHeader header;
    header.trainer = trainer;
    header.event = event;
    header.part = part;
    header.token_count = token_count;
    header.hidden_dtype = kernels::DType::kFp32;
    return header;
  }

  absl::StatusOr<Head> Open(const server::HeadHeader& header) {
    PendingCall<Head> opened;
    owned_->OpenHead(header, BlockingShard::NewCall(), opened.Callback());
    return opened.Wait();
  }

  /// Lands `header.token_count` tokens with target 1 and hidden state (h, 1).
  static absl::Status Land(server::HeadCall& head, float h = 1) {
    for (int64_t t = 0; t < head.header().token_count; ++t) {
      const std::vector<int64_t> target = {1};
      absl::Status landed = head.AppendInputs(t, target, Floats({h, 1}));
      if (!landed.ok()) return landed;
    }
    return absl::OkStatus();
  }

  PendingCall<int64_t> StartStatistics(
      server::HeadCall& head,
      std::shared_ptr<server::Call> call = BlockingShard::NewCall()) {
    PendingCall<int64_t> computed;
    owned_->ComputeHeadStatistics(head, std::move(call), computed.Callback());
    return computed;
  }

  /// Lands the slice's own statistics as the merged ones, with this upstream.
  static absl::Status LandMerged(server::HeadCall& head, float upstream = 1) {
    const auto tokens = static_cast<size_t>(head.header().token_count);
    std::vector<float> max(tokens);
    std::vector<float> sums(tokens);
    std::vector<float> targets(tokens);
    absl::Status read = head.ReadStatistics(0, {max, sums, targets});
    if (!read.ok()) return read;
    const std::vector<float> gradients(tokens, upstream);
    return head.AppendMerged({0, max, sums, gradients});
  }

  PendingCall<server::PartReceipt> StartFinish(server::HeadCall& head) {
    PendingCall<server::PartReceipt> finished;
    owned_->FinishHead(head, BlockingShard::NewCall(), finished.Callback());
    return finished;
  }

  /// All phases; `head` stays open.
  absl::StatusOr<server::PartReceipt> RunPhases(server::HeadCall& head,
                                                float h = 1,
                                                float upstream = 1) {
    absl::Status status = Land(head, h);
    if (status.ok()) status = StartStatistics(head).Wait().status();
    if (status.ok()) status = LandMerged(head, upstream);
    if (!status.ok()) return status;
    return StartFinish(head).Wait();
  }

  absl::StatusOr<server::PartReceipt> Run(const server::HeadHeader& header,
                                          float h = 1, float upstream = 1) {
    absl::StatusOr<Head> head = Open(header);
    if (!head.ok()) return head.status();
    return RunPhases(**head, h, upstream);
  }

  static server::EventCommit AdamW(std::vector<int64_t> sessions = {1, 1}) {
    server::EventCommit commit;
    commit.sessions = std::move(sessions);
    kernels::AdamWScalars scalars;
    scalars.learning_rate = 1;
    commit.adamw = scalars;
    return commit;
  }

  /// Seals both ranks with so many parts and applies the event.
  void Apply(int64_t event, int32_t parts0, int32_t parts1) {
    ASSERT_THAT(shard_->Seal(kRank0, event, parts0), IsOk());
    ASSERT_THAT(shard_->Seal(kRank1, event, parts1), IsOk());
    ASSERT_THAT(shard_->Commit(kRank0, event, AdamW()), IsOk());
    ASSERT_EQ(AppliedEvent(), event);
  }

  PendingCall<server::EventState> StartWaitFolded(int64_t event, int32_t rank,
                                                  int32_t part_count) {
    server::EventWait wait;
    wait.folded_event = event;
    wait.folded_rank = rank;
    wait.folded_part_count = part_count;
    PendingCall<server::EventState> pending;
    owned_->GetEventState(wait, BlockingShard::NewCall(), pending.Callback());
    return pending;
  }
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_HEAD_FIXTURE_H_
