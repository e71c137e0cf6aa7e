#ifndef ROWHOUSE_SERVER_SHARD_HEAD_LANDING_H_
#define ROWHOUSE_SERVER_SHARD_HEAD_LANDING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/hash.h"
#include "kernels/mutex.h"
#include "server/shard/head_call.h"
#include "server/shard/head_operands.h"
#include "server/shard/ledger.h"
#include "server/shard/row_range.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// What a head call holds between its phases. The lane takes it away when it
/// revokes the call; the call's own thread and the lane share it.
///
/// Thread-safe.
class HeadMemory {
 public:
  using OnRevoked = absl::AnyInvocable<void(absl::Status)>;

  /// Frees the memory, and tells the call; later uses end with `reason`, or
  /// with an earlier fault of the call. The call cannot end while it is being
  /// told.
  void Revoke(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Called at once when that has happened.
  void set_on_revoked(OnRevoked on_revoked) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class HeadLanding;

  Mutex mutex_;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  OnRevoked on_revoked_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<HeadOperands> operands_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const HeldClassWeights> class_weights_
      ABSL_GUARDED_BY(mutex_);                          // Of `operands_`.
  kernels::Buffer statistics_ ABSL_GUARDED_BY(mutex_);  // `Statistics...`.
  kernels::Buffer gradient_ ABSL_GUARDED_BY(mutex_);    // [tokens, dim] fp32.
};

/// A head call's tokens on their way, on the caller's thread; the lane forms
/// the results.
class HeadLanding final : public HeadCall {
 public:
  struct Shared {
    const ShardSpec& spec;
    const RowRange& range;
    kernels::Backend& backend;
    ClassWeightSets& class_weights;
  };

  /// Errors: the backend's, for want of memory.
  static absl::StatusOr<std::unique_ptr<HeadLanding>> Create(
      const Shared& shard, const HeadHeader& header);
  ~HeadLanding() override;

  const HeadHeader& header() const override { return header_; }
  void set_on_revoked(HeadMemory::OnRevoked on_revoked) override {
    memory_->set_on_revoked(std::move(on_revoked));
  }
  absl::Status AppendClassWeights(int64_t first_row,
                                  std::span<const float> values) override;
  bool class_weights_complete() const override {
    return !header_.class_weights ||
           class_weight_count_ == shard_.range.row_count();
  }
  absl::Status AppendInputs(int64_t first_token,
                            std::span<const int64_t> targets,
                            std::string_view hidden) override;
  bool inputs_complete() const override {
    return input_count_ == header_.token_count;
  }
  absl::Status ReadStatistics(int64_t first_token,
                              const HeadStatisticsOut& out) override;
  absl::Status AppendMerged(const HeadMergedTokens& tokens) override;
  bool merged_complete() const override {
    return merged_count_ == header_.token_count;
  }
  absl::Status ReadHiddenGradient(int64_t first_token,
                                  std::span<float> out) override;

  /// Called when it is destroyed.
  void set_abandon(absl::AnyInvocable<void()> abandon) {
    abandon_ = std::move(abandon);
  }

  // The lane's side.
  /// Whether the call was given room to stage a part.
  bool staging() const { return staging_; }
  void set_staging() { staging_ = true; }
  /// Its number among the shard's head calls.
  int64_t place() const { return place_; }
  void set_place(int64_t place) { place_ = place; }
  const std::shared_ptr<HeadMemory>& memory() const { return memory_; }
  PartName name() const;
  PartContent content() const;
  /// OK when all of the phases so far has come and none was bad.
  absl::Status CheckInputs() const;
  absl::Status CheckMerged() const;
  /// What the call holds: null once it has been revoked.
  std::shared_ptr<const HeadOperands> operands() const;
  /// Those of the operands; null where there are none.
  std::shared_ptr<const HeldClassWeights> class_weights() const;
  kernels::HeadStatistics statistics() const;
  /// Room for the hidden gradient, made when it is first asked for.
  ///
  /// Errors: the backend's, for want of memory.
  absl::StatusOr<float*> hidden_gradient();

 private:
  HeadLanding(const Shared& shard, const HeadHeader& header);

  absl::Status Allocate();
  absl::Status LandClassWeights(int64_t first_row,
                                std::span<const float> values)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_->mutex_);
  absl::Status LandInputs(int64_t first_token, std::span<const int64_t> targets,
                          std::string_view hidden)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_->mutex_);
  absl::Status LandTargets(std::span<const int64_t> targets)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_->mutex_);
  absl::Status LandMerged(const HeadMergedTokens& tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_->mutex_);
  std::vector<float> WithoutIgnored(std::span<const float> values) const;
  absl::Status CheckMergedShape(const HeadMergedTokens& tokens) const;
  absl::Status CheckMergedValues(const HeadMergedTokens& tokens) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_->mutex_);
  absl::Status LandMergedArrays(const HeadMergedTokens& tokens)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory_->mutex_);
  bool rejects() const;

  const Shared shard_;
  const HeadHeader header_;
  const std::shared_ptr<HeadMemory> memory_ = std::make_shared<HeadMemory>();
  absl::AnyInvocable<void()> abandon_;
  bool staging_ = false;
  int64_t place_ = 0;
  int64_t class_weight_count_ = 0;
  int64_t input_count_ = 0;
  int64_t merged_count_ = 0;
  kernels::ContentSum ids_;           // Of targets and merged statistics.
  kernels::ContentSum rows_;          // Of hidden states.
  std::vector<float> class_weights_;  // Until all have come.
  kernels::ContentSum class_weight_content_;
  std::vector<int64_t> slots_;
  std::vector<bool> ignored_;  // By token: the target is the ignored one.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_HEAD_LANDING_H_
