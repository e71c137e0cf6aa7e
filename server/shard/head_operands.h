#ifndef ROWHOUSE_SERVER_SHARD_HEAD_OPERANDS_H_
#define ROWHOUSE_SERVER_SHARD_HEAD_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/dtype.h"
#include "server/shard/class_weights.h"
#include "server/shard/head_call.h"

namespace rowhouse::server {

/// What the weight gradient of a head call is formed from: in one piece of
/// backend memory hidden states, targets as slots, merged statistics and the
/// loss's gradient by its tokens; and the terms of its loss. Must not outlive
/// its backend.
class HeadOperands {
 public:
  /// Room for a call's tokens, not filled.
  ///
  /// Errors: the backend's, for want of memory.
  static absl::StatusOr<HeadOperands> Allocate(kernels::Backend& backend,
                                               const HeadHeader& header,
                                               int64_t dim);

  int64_t token_count() const { return token_count_; }
  int64_t size_bytes() const { return memory_.size_bytes(); }

  std::byte* hidden() const { return At(hidden_offset_); }
  int64_t* targets() const { return reinterpret_cast<int64_t*>(At(0)); }
  float* max_logits() const { return Floats(0); }
  float* exp_sums() const { return Floats(1); }
  float* upstream() const { return Floats(2); }
  bool has_coefficients() const { return has_coefficients_; }
  float* target() const { return Floats(3); }     ///< With coefficients; so
  float* smoothing() const { return Floats(4); }  ///< is this.

  float softcap() const { return softcap_; }
  /// Null where there are none.
  const ClassWeights* class_weights() const { return class_weights_.get(); }
  void set_class_weights(std::shared_ptr<const ClassWeights> weights) {
    class_weights_ = std::move(weights);
  }

  kernels::HeadInputs inputs() const;
  kernels::HeadMerged merged() const;

 private:
  std::byte* At(int64_t offset) const {
    return memory_.data() == nullptr ? nullptr
                                     : memory_.as<std::byte>() + offset;
  }
  float* Floats(int64_t array) const;

  kernels::Buffer memory_;
  int64_t token_count_ = 0;
  int64_t hidden_offset_ = 0;
  kernels::DType hidden_dtype_ = kernels::DType::kBf16;
  bool has_coefficients_ = false;
  float softcap_ = 0.0F;
  std::shared_ptr<const ClassWeights> class_weights_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_HEAD_OPERANDS_H_
