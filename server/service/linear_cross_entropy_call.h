#ifndef ROWHOUSE_SERVER_SERVICE_LINEAR_CROSS_ENTROPY_CALL_H_
#define ROWHOUSE_SERVER_SERVICE_LINEAR_CROSS_ENTROPY_CALL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "rowhouse/v1/lm_head_service.pb.h"
#include "server/service/active_calls.h"
#include "server/service/call_turn.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"
#include "server/transport/head_inbox.h"
#include "server/transport/link.h"
#include "server/transport/mappings.h"

namespace rowhouse::server {

/// One LinearCrossEntropy call: reads class weights and inputs, has the shard
/// form the statistics, writes them, reads the merged ones, has the shard form
/// the hidden gradient, writes it. One thing at a time: a read, a write, or the
/// shard's work; only a revocation by the lane comes in between. Deletes
/// itself.
class LinearCrossEntropyCall final
    : public grpc::ServerBidiReactor<v1::LinearCrossEntropyRequest,
                                     v1::LinearCrossEntropyResponse> {
 public:
  /// The references must outlive it.
  LinearCrossEntropyCall(ActiveCalls& calls,
                         const grpc::CallbackServerContext& context,
                         const TableRegistry& tables, const Mappings& mappings,
                         const Links& links)
      : active_(calls, context),
        tables_(tables),
        mappings_(mappings),
        links_(links) {}

  /// Begins to read, or ends the call.
  void Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  enum class Phase : uint8_t {
    kHeader,
    kClassWeights,
    kInputs,
    kStatistics,
    kMerged,
    kGradient,
  };

  absl::Status OnMessage();
  absl::Status OnEnd();
  absl::Status Open();
  void OnOpened(absl::StatusOr<std::unique_ptr<HeadCall>> head);
  void OnRevoked(const absl::Status& reason);
  void ReadInputs();
  absl::Status LandClassWeights();
  absl::Status LandInputs();
  absl::Status LandTargets(int64_t first_token,
                           std::span<const int64_t> targets);
  absl::Status LandMerged();
  void ComputeStatistics();
  void ComputeGradient();
  absl::Status WriteNext();
  absl::Status FillStatistics();
  absl::Status FillGradient();
  int64_t TokensOfMessage(int64_t token_bytes);

  // Of a link: posts work to its thread, as work of the shard; and there tells
  // the client the turn, and moves the bytes.
  void OnLink(void (LinearCrossEntropyCall::*work)());
  void ReceiveInputs();
  void SendGradient();
  absl::Status Transfer(absl::FunctionRef<absl::Status()> move);

  // Each does nothing, and `Begin...` give no turn, once the call has ended.
  void Read();
  void Write();
  void BeginShardWork(absl::FunctionRef<void()> work);
  /// Takes the turn back from the shard; false when the call must end, which
  /// it then has.
  bool EndShardWork(const absl::Status& status);
  void End(absl::Status status);

  ActiveCall active_;
  const TableRegistry& tables_;
  const Mappings& mappings_;
  const Links& links_;
  const std::shared_ptr<CallTurn> turn_ = std::make_shared<CallTurn>();
  v1::LinearCrossEntropyRequest request_;
  v1::LinearCrossEntropyResponse response_;
  Phase phase_ = Phase::kHeader;
  std::unique_ptr<HeadInbox> inbox_;  // Null without a mapping.
  std::shared_ptr<Link> link_;        // Null without one.
  std::vector<int64_t> targets_;      // With a link, until all have come.
  // Transfers, of hidden states and of the gradient: whether the client was
  // told the turn.
  std::array<std::promise<bool>, 2> turns_written_;
  size_t transfer_count_ = 0;
  std::atomic<bool> writes_turn_ = false;
  std::unique_ptr<HeadCall> head_;
  int64_t merged_count_ = 0;   // Tokens of merged statistics that have come.
  int64_t written_count_ = 0;  // Tokens of this phase that were written.
  int64_t message_count_ = 0;  // Messages of this phase that were written.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_LINEAR_CROSS_ENTROPY_CALL_H_
