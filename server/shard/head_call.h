#ifndef ROWHOUSE_SERVER_SHARD_HEAD_CALL_H_
#define ROWHOUSE_SERVER_SHARD_HEAD_CALL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "server/shard/trainer_session.h"

namespace rowhouse::server {

/// What a head call is for.
enum class HeadPurpose : uint8_t {
  kTraining = 1,    ///< Hidden gradient, and a weight gradient as a part.
  kFrozen = 2,      ///< Hidden gradient only.
  kEvaluation = 3,  ///< Statistics only.
};

/// Opens a head call: linear cross entropy of a trainer's tokens over this
/// shard's rows.
struct HeadHeader {
  HeadPurpose purpose = HeadPurpose::kTraining;
  std::optional<TrainerSession> trainer;  ///< Needed but for evaluations.
  int64_t event = 0;  ///< Runs on the weights of the event before it.
  int32_t part = 0;   ///< kTraining: its number in the contribution.
  int64_t token_count = 0;
  kernels::DType hidden_dtype = kernels::DType::kBf16;
  int64_t ignore_index = -100;
  float softcap = 0.0F;              ///< 0: none.
  bool class_weights = false;        ///< They come before the inputs.
  bool weighted_logit_sums = false;  ///< Are statistics too; so are
  bool predicted = false;            ///< predicted rows.
  bool coefficients = false;  ///< Of the target and of smoothing are merged.
};

/// Merged statistics of consecutive tokens, and their upstream gradient; the
/// last two with `HeadHeader::coefficients` only.
struct HeadMergedTokens {
  int64_t first_token = 0;
  std::span<const float> max_logits;
  std::span<const float> exp_sums;
  std::span<const float> upstream;  ///< With coefficients, the probability's.
  std::span<const float> target = {};
  std::span<const float> smoothing = {};
};

/// Statistics of consecutive tokens; the caller's arrays of one size, the last
/// two empty if they were not asked for.
struct HeadStatisticsOut {
  std::span<float> max_logits;
  std::span<float> exp_sums;
  std::span<float> target_logits;
  std::span<float> weighted_logit_sums = {};
  std::span<int64_t> predicted = {};  ///< Global row ids, or -1.
};

/// A head call that is open. Owned by the call that opened it; destroying it
/// gives its place back. Must not outlive its shard.
///
/// Thread-compatible; works on the caller's thread, off the lane.
class HeadCall {
 public:
  virtual ~HeadCall() = default;

  virtual const HeadHeader& header() const = 0;

  /// Called, at most once, when the call is revoked: its session was fenced,
  /// its part superseded, its contribution discarded or sealed without it, its
  /// event applied, or its shard closed. Its memory is free then. On the lane,
  /// or at once where that has happened. It is quick, calls nothing of the
  /// call, and does not destroy it: destroying the call waits for it.
  virtual void set_on_revoked(
      absl::AnyInvocable<void(absl::Status)> on_revoked) = 0;

  /// Lands class weights of the slice's next rows, where the header announced
  /// them; they are read before it returns. After a fault every later use ends
  /// with it.
  ///
  /// Errors:
  ///   kInvalidArgument    BAD_OFFSET, BAD_COUNT; BAD_SCALAR: names the first
  ///                       that is negative or not finite.
  ///   kResourceExhausted  CLASS_WEIGHTS_FULL, with a retry delay.
  ///   or what the call was revoked with.
  virtual absl::Status AppendClassWeights(int64_t first_row,
                                          std::span<const float> values) = 0;
  virtual bool class_weights_complete() const = 0;

  /// Lands the next tokens: global row ids of the targets, and hidden states,
  /// [tokens, dim] of the header's type; both are read before it returns. After
  /// a fault every later use ends with it.
  ///
  /// Errors:
  ///   kInvalidArgument  BAD_OFFSET, BAD_COUNT, BAD_SHAPE, NOT_FINITE.
  ///   kOutOfRange       ROW_OUT_OF_TABLE: names the first bad target.
  ///   or what the call was revoked with.
  virtual absl::Status AppendInputs(int64_t first_token,
                                    std::span<const int64_t> targets,
                                    std::string_view hidden) = 0;
  virtual bool inputs_complete() const = 0;

  /// Copies statistics of consecutive tokens, from `first_token` on. After
  /// `ComputeHeadStatistics`.
  ///
  /// REQUIRES: they are tokens of the call.
  ///
  /// Errors: what the call was revoked with.
  virtual absl::Status ReadStatistics(int64_t first_token,
                                      const HeadStatisticsOut& out) = 0;

  /// Lands merged statistics of the next tokens, arrays of one size; they are
  /// read before it returns. After a fault every later use ends with it.
  ///
  /// Errors:
  ///   kInvalidArgument  BAD_OFFSET, BAD_COUNT, BAD_SHAPE, NOT_FINITE.
  ///   or what the call was revoked with.
  virtual absl::Status AppendMerged(const HeadMergedTokens& tokens) = 0;
  virtual bool merged_complete() const = 0;

  /// Copies rows of the hidden gradient, [out.size() / dim, dim] fp32, from
  /// `first_token` on. After `FinishHead`.
  ///
  /// REQUIRES: they are tokens of the call.
  ///
  /// Errors: what the call was revoked with.
  virtual absl::Status ReadHiddenGradient(int64_t first_token,
                                          std::span<float> out) = 0;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_HEAD_CALL_H_
