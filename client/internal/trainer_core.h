#ifndef ROWHOUSE_CLIENT_INTERNAL_TRAINER_CORE_H_
#define ROWHOUSE_CLIENT_INTERNAL_TRAINER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/committer.h"
#include "client/internal/contributions.h"
#include "client/internal/flush_queue.h"
#include "client/internal/keep_alive.h"
#include "client/internal/pull_gate.h"
#include "client/internal/router.h"
#include "client/internal/session.h"
#include "rowhouse/trainer.h"

namespace rowhouse::client::internal {

/// What stands behind a `Trainer`, and outlives it while pulls are under way.
///
/// Thread-safe.
class TrainerCore {
 public:
  static absl::StatusOr<std::shared_ptr<TrainerCore>> Join(
      std::shared_ptr<ClusterCore> cluster, std::string_view table,
      int32_t rank, absl::Duration timeout);

  TrainerCore(std::unique_ptr<Router> router, const OpenedSession& session,
              const Inheritance& inheritance);

  /// Cancels all calls and ends the threads.
  void Shutdown();

  const TableInfo& table() const { return router_->table(); }
  Router& router() { return *router_; }
  ClusterCore& cluster() { return router_->cluster(); }
  TrainerSession session() const { return session_.trainer; }
  Cancellation& stop() { return stop_; }
  PullGate& gate() { return gate_; }
  /// Of head calls with frozen weights: one goes through its phases at a time,
  /// on all shards, so that no two hold places that the other waits for.
  PullGate& frozen_gate() { return frozen_gate_; }
  Contributions& contributions() { return contributions_; }
  FlushQueue& flushes() { return flushes_; }
  int64_t next_event() const { return contributions_.next_event(); }
  int64_t next_commit() const;

  /// Splits ids, of the host's memory or the cluster's device's. With `keep`
  /// there is a copy on the device, if there is one.
  absl::StatusOr<std::shared_ptr<const RowSplit>> Split(
      std::span<const int64_t> row_ids, bool keep = false);

  absl::StatusOr<std::shared_ptr<const PulledRows>> Pull(
      std::shared_ptr<const RowSplit> split, RowBuffer out,
      const PullOptions& options, const CallContext& context);
  absl::Status Repull(const PulledRows& rows, std::span<std::byte> out,
                      const CallOptions& options);
  absl::StatusOr<PushResult> Push(int64_t event, const PulledRows& rows,
                                  std::span<const std::byte> gradients,
                                  const PushOptions& options);
  absl::Status Seal(int64_t event, const CallOptions& options);
  absl::Status Discard(int64_t event, const CallOptions& options);
  absl::Status Commit(int64_t event, CommitDecision decision);
  absl::Status WaitForEvent(int64_t event, const CallOptions& options);
  absl::Status FlushWeightGradient(const CallOptions& options);

  CallContext Context(absl::Duration timeout) {
    return cluster().Context(timeout, stop_);
  }

 private:
  absl::Status SealEverywhere(int64_t event, int32_t part_count,
                              const CallContext& context);
  absl::Status CheckRows(const PulledRows& rows) const;
  absl::Status CommitterStatus() const {
    return committer_ == nullptr ? absl::OkStatus() : committer_->status();
  }

  const std::unique_ptr<Router> router_;
  const OpenedSession session_;
  Cancellation stop_;
  PullGate gate_;
  PullGate frozen_gate_;
  Contributions contributions_;
  FlushQueue flushes_;
  std::unique_ptr<Committer> committer_;  // Rank 0.
  std::unique_ptr<KeepAlive> keep_alive_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_TRAINER_CORE_H_
